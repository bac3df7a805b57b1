// Flags without effect are warned of, one by one, and no others.
#include "app/flags/unused_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/flags/flags.h"

namespace braid::unused_flags_test {

using testing::ElementsAre;
using testing::IsEmpty;

using Line = std::vector<const char*>;

template <class Flags>
std::vector<std::string> unused_in(Line line, const Line& flags) {
  line.insert(line.begin(), "braid");
  line.insert(line.end(), flags.begin(), flags.end());
  return std::get<Flags>(parse_command_line(int(line.size()), line.data())).unused;
}

std::vector<std::string> unused(const Line& flags) {
  return unused_in<GenerateFlags>({"generate", "a"}, flags);
}

const std::vector<Line> kOffloadFlags = {{"--offload-group", "2"},    {"--prefetch", "1"},
                                         {"--resident", "1"},         {"--residency", "leading"},
                                         {"--pin", "never"},          {"--check-order"},
                                         {"--offload-dir", "folder"}, {"--disk-reads", "mapped"}};

TEST(UnusedFlags, AreThoseOfOffloadingWhereNothingIsOffloaded) {
  for (const auto& flag : kOffloadFlags)
    EXPECT_THAT(unused(flag),
                ElementsAre(std::string(flag[0]) + " is not used: nothing is offloaded"));
  EXPECT_THAT(unused({"--prefetch", "2", "--pin", "never"}),
              ElementsAre("--prefetch is not used: nothing is offloaded",
                          "--pin is not used: nothing is offloaded"));
}

TEST(UnusedFlags, AreNoneWhereSomethingMayBeOffloaded) {
  const std::vector<Line> reasons = {{"--offload", "block"},    {"--offload-text", "model"},
                                     {"--offload-vae", "leaf"}, {"--memory", "6GB"},
                                     {"--host-memory", "6GB"},  {"--preset", "auto"},
                                     {"--device", "cuda"},      {"--devices", "cpu,cuda:1"}};
  for (const auto& reason : reasons)
    for (auto flags : kOffloadFlags) {
      if (flags[0] == std::string("--disk-reads"))
        flags.insert(flags.end(), {"--offload-dir", "d"});
      flags.insert(flags.end(), reason.begin(), reason.end());
      EXPECT_THAT(unused(flags), IsEmpty()) << testing::PrintToString(flags);
    }
}

TEST(UnusedFlags, AreKnownWhereNothingIsLeftOpen) {
  for (const auto* const reason : {"--memory", "--host-memory"})
    EXPECT_EQ(unused({"--prefetch", "2", reason, "6GB", "--offload", "none"}).size(), 1u);
  EXPECT_EQ(unused({"--prefetch", "2", "--device", "cuda", "--offload", "none"}).size(), 1u);
  EXPECT_EQ(unused({"--prefetch", "2", "--device", "cuda", "--preset", "none"}).size(), 1u);
  EXPECT_EQ(unused({"--prefetch", "2", "--preset", "auto", "--offload", "none"}).size(), 1u);
}

TEST(UnusedFlags, SayThatFilesAreReadOnlyWhereThereAreSome) {
  EXPECT_THAT(unused({"--offload", "block", "--disk-reads", "mapped"}),
              ElementsAre("--disk-reads is not used: there is no --offload-dir"));
  EXPECT_THAT(unused({"--offload", "block", "--disk-reads", "mapped", "--host-memory", "6GB"}),
              IsEmpty());
}

TEST(UnusedFlags, SayThatNothingIsQuantized) {
  const auto* const sentence = "--quantize-skip is not used: the transformer is not quantized";
  EXPECT_THAT(unused({"--quantize-skip", "img_in"}), ElementsAre(sentence));
  EXPECT_THAT(unused({"--quantize-skip", "img_in", "--quantize-text", "int8"}),
              ElementsAre(sentence));
  EXPECT_THAT(unused({"--quantize-skip", "img_in", "--quantize", "int8"}), IsEmpty());
  EXPECT_THAT(unused({"--quantize-skip", "img_in", "--quantize", "auto", "--memory", "6GB"}),
              IsEmpty());
  EXPECT_THAT(unused({"--quantize-skip", "img_in", "--preset", "auto"}), IsEmpty());
  EXPECT_THAT(unused_in<ConvertFlags>({"convert", "-m", "a", "-o", "b"}, {"--quantize-skip", "x"}),
              ElementsAre(sentence));
}

TEST(UnusedFlags, SayWhichCacheIsMissing) {
  EXPECT_THAT(unused({"--cache-limit", "3"}),
              ElementsAre("--cache-limit is not used: --cache is off"));
  EXPECT_THAT(unused({"--cache-polynomial", "1,0"}),
              ElementsAre("--cache-polynomial is not used: --cache is off"));
  EXPECT_THAT(unused({"--cache", "first-block", "--cache-limit", "3", "--cache-polynomial", "1,0"}),
              ElementsAre("--cache-polynomial is not used: only --cache accumulated applies it"));
  EXPECT_THAT(unused({"--cache", "accumulated", "--cache-limit", "3", "--cache-polynomial", "1,0"}),
              IsEmpty());
}

TEST(UnusedFlags, AreFoundInEveryCommand) {
  const Line prefetch = {"--prefetch", "2"};
  EXPECT_EQ(unused_in<ServeFlags>({"serve"}, {"--prefetch", "2", "--cache-limit", "2"}).size(), 2u);
  EXPECT_EQ(unused_in<PlanFlags>({"plan"}, prefetch).size(), 1u);
  EXPECT_EQ(unused_in<VerifyFlags>({"verify"}, prefetch).size(), 1u);
  EXPECT_EQ(unused_in<BenchFlags>({"bench"}, prefetch).size(), 1u);
}

TEST(UnusedFlags, OfVerifyingMayPageTheSingleRank) {
  EXPECT_THAT(unused_in<VerifyFlags>({"verify", "--memory", "1GB", "--offload", "none"},
                                     {"--offload-dir", "d"}),
              IsEmpty());
}

TEST(UnusedFlags, OfASweepAreUsedInNoConfiguration) {
  EXPECT_THAT(
      unused_in<BenchFlags>({"bench", "--sweep", "offload=none,block"}, {"--prefetch", "2"}),
      IsEmpty());
  EXPECT_THAT(unused_in<BenchFlags>({"bench", "--sweep", "prefetch=1,2"}, {}),
              ElementsAre("--prefetch is not used: nothing is offloaded"));
}

}  // namespace braid::unused_flags_test
