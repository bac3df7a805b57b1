// Tokens of prompts, counted as transformers counts them: its tokenizers' ids and offsets are the
// reference (5.23).
#include "pipeline/families/prompt_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "braid/braid.h"
#include "pipeline/families/family.h"
#include "pipeline/files/found_files.h"

namespace braid::prompt_tokens_test {

const std::string kDemo = BRAID_SOURCE_DIR "/models/demo";
std::string parity_model(const std::string& name) {
  return BRAID_SOURCE_DIR "/tests/data/parity/" + name + "/model";
}

PromptCounter counter_of(const std::string& model) {
  const auto files = find_model({.model = model}).files;
  return {open_family(files)->prompt_readers(), files.folder};
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += (i > 0 ? " " : "") + text;
  return all;
}
const std::string kLong = repeated("a red circle on a blue background", 20);

TEST(PromptCounter, CountsSpecialTokensAsTransformersDoes) {
  const auto counter = counter_of(kDemo);
  const auto short_ones = counter.count("a red circle", "", 64);
  ASSERT_EQ(short_ones.size(), 2u);
  EXPECT_EQ(short_ones[0].encoder, "CLIP");
  EXPECT_EQ(short_ones[0].tokens, 5);
  EXPECT_EQ(short_ones[0].limit, 77) << "whatever the request's length is";
  EXPECT_EQ(short_ones[1].encoder, "T5");
  EXPECT_EQ(short_ones[1].tokens, 4);
  EXPECT_EQ(short_ones[1].limit, 64);
  for (const auto& one : short_ones) EXPECT_EQ(one.cut, "");
  const auto empty = counter.count("", "", 64);
  EXPECT_EQ(empty[0].tokens, 2);
  EXPECT_EQ(empty[1].tokens, 1);
}

TEST(PromptCounter, NamesTheWordsThatEachEncoderDoesNotRead) {
  const auto counts = counter_of(kDemo).count(kLong, "", 64);
  EXPECT_EQ(counts[0].tokens, 142);
  EXPECT_EQ(counts[0].cut, kLong.substr(357));
  EXPECT_EQ(counts[1].tokens, 141);
  EXPECT_EQ(counts[1].cut, kLong.substr(305));
}

TEST(PromptCounter, CutsBetweenCharactersWhereThereAreNoSpaces) {
  const std::string cat = "猫";
  std::string cats;
  for (int i = 0; i < 100; ++i) cats += cat;
  const auto counts = counter_of(kDemo).count(cats, "", 64);
  EXPECT_EQ(counts[0].tokens, 302);
  EXPECT_EQ(counts[0].cut, cats.substr(25 * cat.size()));
  EXPECT_EQ(counts[1].tokens, 3) << "unknown to this T5, and one token";
  EXPECT_EQ(counts[1].cut, "");
}

TEST(PromptCounter, ReadsTheSecondPromptOnlyWithT5) {
  const auto counts = counter_of(kDemo).count("a red circle", kLong, 512);
  EXPECT_EQ(counts[0].tokens, 5);
  EXPECT_EQ(counts[1].tokens, 141);
}

TEST(PromptCounter, CountsTheChatAndCutsThePromptWithin) {
  const auto counter = counter_of(parity_model("klein"));
  EXPECT_EQ(counter.count("a red circle", "", 64).front().tokens, 28);
  const auto long_one = counter.count(kLong, "", 64).front();
  EXPECT_EQ(long_one.tokens, 282);
  EXPECT_EQ(long_one.cut, kLong.substr(151));
  const auto circles = repeated("circle", 70);
  EXPECT_EQ(counter.count(circles, "", 64).front().cut, circles.substr(132))
      << "a word that is read in part is not read";
  // 22 tokens are the chat's: with 10 for the prompt's end, only the assistant's turn is cut.
  EXPECT_EQ(counter.count("a red circle", "", 24).front().cut, "");
}

TEST(PromptCounter, RefusesTextThatIsNotUtf8) {
  EXPECT_THROW((void)counter_of(kDemo).count("\xff", "", 64), InputError);
}

class CountedModel : public testing::TestWithParam<std::string> {};

// Otherwise the page would promise something else than the engine does.
TEST_P(CountedModel, IsWarnedOfOneTokenTooMany) {
  const auto model = GetParam() == "demo" ? kDemo : parity_model(GetParam());
  const auto counted = counter_of(model).count("a red circle on a blue", "", 512).back();
  const Pipeline pipeline({.model = model, .dtype = Dtype::kFloat32});
  for (const auto& [length, are_warned] :
       {std::pair(int(counted.tokens), false), std::pair(int(counted.tokens) - 1, true)}) {
    std::vector<std::string> warnings;
    const Hooks hooks{.warning = [&](const std::string& one) { warnings.push_back(one); }};
    (void)pipeline.generate({.prompts = {"a red circle on a blue"},
                             .width = 32,
                             .height = 32,
                             .steps = 1,
                             .max_sequence_length = length},
                            hooks);
    const auto of_length = testing::Contains(testing::HasSubstr("tokens"));
    if (are_warned)
      EXPECT_THAT(warnings, of_length) << length;
    else
      EXPECT_THAT(warnings, testing::Not(of_length)) << length;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, CountedModel,
                         testing::Values("demo", "klein", "flux2-dev", "zimage-turbo", "krea2"));
INSTANTIATE_TEST_SUITE_P(SlowFamilies, CountedModel, testing::Values("joy"));

}  // namespace braid::prompt_tokens_test
