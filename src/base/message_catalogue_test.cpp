// SPDX-License-Identifier: Apache-2.0
#include "base/message_catalogue.h"

#include <gtest/gtest.h>

#include "base/catalogue_for_tests.h"

namespace gflow {
namespace {

using namespace std::string_literals;

std::string sample() {
  return catalogue_bytes({{"", "Project-Id-Version: x\nLanguage: de\nMIME-Version: 1.0\n"},
                          {"job", "Auftrag"},
                          {"jobs wait", "Aufträge warten"},
                          {"{} GPU\0{} GPUs"s, "{} Karte\0{} Karten"s},
                          {"{} node\0{} nodes"s, "{} 个节点"}});
}

TEST(MessageCatalogue, FindsEachMessageAndNothingElse) {
  const std::string bytes = sample();
  const auto catalogue = MessageCatalogue::read(bytes);
  ASSERT_TRUE(catalogue);
  EXPECT_EQ(catalogue->find("job"), "Auftrag");
  EXPECT_EQ(catalogue->find("jobs wait"), "Aufträge warten");
  EXPECT_EQ(catalogue->find("jobs"), "");
  EXPECT_EQ(catalogue->find("zebra"), "");
  EXPECT_EQ(catalogue->language(), "de");
}

TEST(MessageCatalogue, ChoosesTheFormForACount) {
  const std::string bytes = sample();
  const auto catalogue = MessageCatalogue::read(bytes);
  ASSERT_TRUE(catalogue);
  EXPECT_EQ(catalogue->find("{} GPU", 1), "{} Karte");
  EXPECT_EQ(catalogue->find("{} GPU", 0), "{} Karten");
  EXPECT_EQ(catalogue->find("{} GPU", 7), "{} Karten");
  EXPECT_EQ(catalogue->find("{} node", 1), "{} 个节点");
  EXPECT_EQ(catalogue->find("{} node", 7), "{} 个节点");
}

TEST(MessageCatalogue, EveryCutAndEveryFlippedByteIsSurvived) {
  const std::string whole = sample();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    const auto catalogue = MessageCatalogue::read(cut);
    if (catalogue) {
      EXPECT_LE(catalogue->find("job").size(), size);
    }
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(~flipped[at]);
    const auto catalogue = MessageCatalogue::read(flipped);
    if (catalogue) {
      EXPECT_LE(catalogue->find("jobs wait").size() + catalogue->language().size(), whole.size());
    }
  }
  EXPECT_FALSE(MessageCatalogue::read(""));
  EXPECT_FALSE(MessageCatalogue::read("what msgfmt never wrote, but long enough for a head"));
}

}  // namespace
}  // namespace gflow
