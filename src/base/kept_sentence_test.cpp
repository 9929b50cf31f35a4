// SPDX-License-Identifier: Apache-2.0
#include "base/kept_sentence.h"

#include <gtest/gtest.h>

#include <map>

#include "base/catalogue_for_tests.h"

namespace gflow {
namespace {

/// Every sentence, each with "=" before it, and the rest as it is.
std::string all_translated() {
  std::map<std::string, std::string> messages = {{"", "\nLanguage: zh_CN\n"}, {"; ", " ; "}};
  for (const auto& [which, text] : kKeptSentences) messages[text] = std::string("=") + text;
  return catalogue_bytes(messages);
}

class KeptSentence : public ::testing::Test {
 protected:
  const std::string bytes_ = all_translated();
  const MessageCatalogue catalogue_ = MessageCatalogue::read(bytes_).value();
};

TEST_F(KeptSentence, EachIsKnownAgain) {
  const MessagesOfThread other(&catalogue_);
  for (const auto& [which, sentence] : kKeptSentences) {
    std::string text = sentence;
    for (int number = 3; text.contains("{}"); ++number) {
      text.replace(text.find("{}"), 2, std::to_string(number));
    }
    EXPECT_EQ(kept_text(text), "=" + text);
  }
}

TEST_F(KeptSentence, WhatStandsInItIsReadToo) {
  const MessagesOfThread other(&catalogue_);
  const std::string ring = kept<Kept::Ring>("44", kept<Kept::BestOfFree>("48"));
  EXPECT_EQ(ring, "ring of 44 GB/s, the best of the free GPUs (48 GB/s on an idle machine)");
  EXPECT_EQ(kept_text(ring + "; 5 links; 1 NUMA node"),
            "=ring of 44 GB/s, =the best of the free GPUs (48 GB/s on an idle machine) ; =5 links "
            "; =1 NUMA node");
  EXPECT_EQ(kept_text(kept<Kept::SeveralTimes>(3, kept<Kept::NeverStartedFor>("no \"ls\""))),
            "=3 times in a row without a fault of its own: =never started: no \"ls\"");
}

TEST_F(KeptSentence, WhatIsNotOfTheTableStays) {
  for (const char* text :
       {"", "; ", "disk full", "one switch; disk full", "x links", "run 'a; b'"}) {
    const MessagesOfThread other(&catalogue_);
    EXPECT_EQ(kept_text(text), text);
  }
  EXPECT_EQ(kept_text("one switch"), "one switch") << "nobody asked for another language";
}

}  // namespace
}  // namespace gflow
