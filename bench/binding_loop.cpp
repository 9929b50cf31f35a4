// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "kube/access.h"
#include "kube/api.h"
#include "kube/credentials.h"

// Bindings and nothing else, for cluster_bench.py: what an API server takes of them in a second.
//
//   binding_loop KUBECONFIG PREFIX COUNT NODES THREADS
//
// binds PREFIX-0, PREFIX-1, ... of the namespace default to node-0, node-1, ... in turn.
namespace kube = gflow::kube;

namespace {

int number(std::string_view text) {
  int value = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string binding(const std::string& pod, int node) {
  return R"({"apiVersion":"v1","kind":"Binding","metadata":{"name":")" + pod +
         R"("},"target":{"kind":"Node","name":"node-)" + std::to_string(node) + "\"}}";
}

}  // namespace

int main(int count, char** words) {
  if (count != 6) {
    (void)std::fprintf(stderr, "binding_loop: see bench/binding_loop.cpp\n");
    return 2;
  }
  const auto access = kube::find_access({.kubeconfig = words[1], .context = ""});
  if (!access) {
    (void)std::fprintf(stderr, "binding_loop: %s\n", access.error().message.c_str());
    return 1;
  }
  kube::Credentials credentials(*access);
  const int pods = number(words[3]);
  const int nodes = number(words[4]);
  std::atomic<int> next = 0;
  std::atomic<int> failed = 0;
  const auto start = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < number(words[5]); ++thread) {
      threads.emplace_back([&] {
        kube::Api api(*access, credentials);
        for (int at = next++; at < pods; at = next++) {
          const std::string pod = std::string(words[2]) + "-" + std::to_string(at);
          const auto answer =
              api.ask({.method = "POST",
                       .path = "/api/v1/namespaces/default/pods/" + pod + "/binding",
                       .body = binding(pod, at % nodes)});
          if (!answer || !answer->is_ok()) ++failed;
        }
      });
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  (void)std::printf("%.3f\n", took.count());
  return failed == 0 ? 0 : 1;
}
