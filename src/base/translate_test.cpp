// SPDX-License-Identifier: Apache-2.0
#include "base/translate.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/catalogue_for_tests.h"

namespace gflow {
namespace {

using namespace std::string_literals;

class Translate : public ::testing::Test {
 protected:
  const std::string bytes_ = catalogue_bytes({{"", "\nLanguage: zh_CN\n"},
                                              {"free", "空闲"},
                                              {"job {} of {}", "{1} 的任务 {0}"},
                                              {"job {} waits", "任务 {} {} 在等"},
                                              {"{} GPU\0{} GPUs"s, "{} 块 GPU"}});
  const MessageCatalogue catalogue_ = MessageCatalogue::read(bytes_).value();
};

TEST_F(Translate, IsEnglishUntilThereIsACatalogue) {
  EXPECT_EQ(messages_in_use(), nullptr);
  EXPECT_EQ(tr("free"), "free");
  EXPECT_EQ(tr_format("job {} of {}", 3, "alice"), "job 3 of alice");
  EXPECT_EQ(tr_count(1, "{} GPU", "{} GPUs", 1), "1 GPU");
  EXPECT_EQ(tr_count(2, "{} GPU", "{} GPUs", 2), "2 GPUs");
}

TEST_F(Translate, TakesWhatTheCatalogueHasAndElseEnglish) {
  const MessagesOfThread chinese(&catalogue_);
  EXPECT_EQ(tr("free"), "空闲");
  EXPECT_EQ(tr(tr_later("free")), "空闲");
  EXPECT_EQ(tr("in use"), "in use");
  EXPECT_EQ(tr(""), "");
  EXPECT_EQ(tr_format("job {} of {}", 3, "alice"), "alice 的任务 3");
  EXPECT_EQ(tr_count(1, "{} GPU", "{} GPUs", 1), "1 块 GPU");
  EXPECT_EQ(tr_count(2, "{} node", "{} nodes", 2), "2 nodes");
}

TEST_F(Translate, ATranslationThatDoesNotFitIsPassedOver) {
  const MessagesOfThread chinese(&catalogue_);
  EXPECT_EQ(tr_format("job {} waits", 3), "job 3 waits");
}

TEST_F(Translate, AThreadHasItsOwnLanguageWhileItWantsOne) {
  set_messages(&catalogue_);
  EXPECT_EQ(tr("free"), "空闲");
  EXPECT_EQ(in_english([] { return tr("free"); }), "free");
  {
    const MessagesOfThread english(nullptr);
    const MessagesOfThread chinese(&catalogue_);
    EXPECT_EQ(tr("free"), "空闲");
  }
  std::string elsewhere;
  const MessagesOfThread english(nullptr);
  std::thread([&] { elsewhere = tr("free"); }).join();
  EXPECT_EQ(elsewhere, "空闲");
  set_messages(nullptr);
}

}  // namespace
}  // namespace gflow
