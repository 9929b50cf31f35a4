// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <iostream>
#include <sstream>

#include "client/commands.h"

// A program that uses the driver: cuda_client LOOKUP [ptsz] reads a command a line and answers each
// with a line, "0 ..." or the driver's error. LOOKUP is how it gets at the functions.
namespace {

client::Request read(std::istringstream& words) {
  client::Request asked;
  for (std::uint64_t number = 0; words >> number;) asked.numbers.push_back(number);
  words.clear();
  words >> asked.name;
  return asked;
}

/// Allocates and frees without end: for those who kill it.
std::string churn(const client::Functions& cu) {
  for (std::uint64_t round = 0;; ++round) {
    client::abi::DevicePtr address = 0;
    const std::uint64_t bytes = (1 + round % 7) << 20;
    if (cu.cuMemAlloc(&address, bytes) == client::abi::kSuccess && round % 64 != 0) {
      (void)cu.cuMemFree(address);
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  const bool has_thread_streams = count > 2;
  const client::Functions cu =
      client::load(count > 1 ? arguments[1] : "linked", has_thread_streams);
  client::Commands commands;
  client::add_contexts(commands, cu);
  client::add_memory(commands, cu);
  client::add_pools(commands, cu);
  client::add_launches(commands, cu);
  client::add_threads(commands, cu);
  client::add_questions(commands, cu);
  client::add_checkpoints(commands, cu);
  client::add_processes(commands, arguments[0]);
  commands["churn"] = [&](const client::Request&) { return churn(cu); };
  if (std::getenv("CLIENT_EXECUTED") != nullptr) std::cout << "0" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    const auto found = commands.find(command);
    std::cout << (found == commands.end() ? "no such command" : found->second(read(words)))
              << std::endl;
  }
  return 0;
}
