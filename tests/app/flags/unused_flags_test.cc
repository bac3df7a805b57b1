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
  const std::vector<Line> reasons = {{"--offload", "block", "--resident", "1"},
                                     {"--memory", "6GB"},
                                     {"--host-memory", "6GB"},
                                     {"--preset", "auto"},
                                     {"--device", "cuda"},
                                     {"--devices", "cpu,cuda:1"}};
  for (const auto& reason : reasons)
    for (auto flags : kOffloadFlags) {
      if (flags[0] == std::string("--disk-reads"))
        flags.insert(flags.end(), {"--offload-dir", "d"});
      flags.insert(flags.end(), reason.begin(), reason.end());
      EXPECT_THAT(unused(flags), IsEmpty()) << testing::PrintToString(flags);
    }
}

// Which flags each mode has no use for, by part: blocks are the transformer's and text encoders',
// and what stays the transformer's.
TEST(UnusedFlags, AreThoseOfOtherModes) {
  const Line all = {"--offload-group", "2",       "--prefetch", "2",     "--resident",   "1",
                    "--residency",     "leading", "--pin",      "never", "--check-order"};
  const auto named = [&](Line line) {
    line.insert(line.end(), all.begin(), all.end());
    std::string flags;
    for (const auto& sentence : unused(line)) flags += sentence.substr(2, sentence.find(' ') - 1);
    return flags;
  };
  const std::string of_transformer = "resident residency ";
  const std::string of_groups = "offload-group prefetch " + of_transformer;
  EXPECT_EQ(named({"--offload", "block"}), "");
  EXPECT_EQ(named({"--offload", "leaf"}), "offload-group ");
  EXPECT_EQ(named({"--offload", "sequential"}), "offload-group prefetch ");
  EXPECT_EQ(named({"--offload", "model"}), of_groups);
  EXPECT_EQ(named({"--offload-text", "block"}), of_transformer);
  EXPECT_EQ(named({"--offload-text", "leaf"}), "offload-group " + of_transformer);
  EXPECT_EQ(named({"--offload-text", "model"}), of_groups);
  EXPECT_EQ(named({"--offload-vae", "block"}), "offload-group " + of_transformer);
  EXPECT_EQ(named({"--offload", "model", "--offload-text", "block"}), of_transformer);
  EXPECT_EQ(named({"--offload", "model", "--memory", "6GB"}), of_groups) << "all are stated";
  EXPECT_EQ(named({"--offload-text", "model", "--memory", "6GB"}), "") << "a budget may choose";
  EXPECT_THAT(unused({"--offload", "block", "--residency", "leading"}),
              ElementsAre("--residency is not used: there is no --resident"));
  EXPECT_THAT(unused({"--offload", "block", "--residency", "leading", "--memory", "6GB"}),
              IsEmpty());
  EXPECT_THAT(
      unused({"--offload", "leaf", "--offload-group", "3"}),
      ElementsAre("--offload-group is not used: only --offload block has groups of blocks"));
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

TEST(UnusedFlags, SayWhatAConvertedModelDoesNotRemember) {
  const auto sentence = [](const std::string& flag) {
    return flag +
           " int8-dynamic is written as int8, as such files do not say what happens to tokens "
           "(rotated ones do): "
           "give it again when you draw with them";
  };
  const std::vector<const char*> convert = {"convert", "-m", "a", "-o", "b"};
  EXPECT_THAT(unused_in<ConvertFlags>(convert, {"--quantize", "int8-dynamic"}),
              ElementsAre(sentence("--quantize")));
  EXPECT_THAT(unused_in<ConvertFlags>(convert, {"--quantize-text", "int8-dynamic"}),
              ElementsAre(sentence("--quantize-text")));
  EXPECT_THAT(unused_in<ConvertFlags>(convert, {"--quantize", "int8"}), IsEmpty());
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

TEST(UnusedFlags, SayWhichDegreeIsMissing) {
  const std::vector<std::pair<Line, std::string>> of_axes = {
      {{"--tp-modulation", "replicated"}, "--tp"},
      {{"--text-encoder", "tp"}, "--tp"},
      {{"--ring-form", "gather"}, "--ring"}};
  for (auto [flags, degree] : of_axes) {
    const auto sentence = std::string(flags[0]) + " is not used: there is no " + degree;
    EXPECT_THAT(unused(flags), ElementsAre(sentence));
    EXPECT_THAT(unused_in<ServeFlags>({"serve"}, flags), ElementsAre(sentence));
    EXPECT_THAT(unused_in<PlanFlags>({"plan"}, flags), IsEmpty()) << "it tries all layouts";
    const bool is_of_denoisers = flags[0] != std::string("--text-encoder");
    if (is_of_denoisers) {
      EXPECT_THAT(unused_in<VerifyFlags>({"verify"}, flags), ElementsAre(sentence));
      EXPECT_THAT(unused_in<BenchFlags>({"bench"}, flags), ElementsAre(sentence));
    }
    flags.insert(flags.end(), {"--ulysses", "2"});
    EXPECT_THAT(unused(flags), ElementsAre(sentence));
    flags.insert(flags.end(), {degree.c_str(), "2"});
    EXPECT_THAT(unused(flags), IsEmpty());
  }
  EXPECT_THAT(unused({"--ring-form", "gather", "--layout", "auto"}), IsEmpty());
  EXPECT_THAT(unused({"--ring-form", "shift", "--text-encoder", "rank0"}), IsEmpty());
}

TEST(UnusedFlags, SayThatThereIsOneRank) {
  const std::vector<Line> of_ranks = {
      {"--collectives", "native"}, {"--vae", "rank0"}, {"--deadline", "5"}};
  for (const auto& flags : of_ranks) {
    for (const Line& one : {Line{}, Line{"--devices", "cpu"}}) {
      auto line = flags;
      line.insert(line.end(), one.begin(), one.end());
      EXPECT_THAT(unused(line),
                  ElementsAre(std::string(flags[0]) + " is not used: there is one rank"));
    }
    for (const Line& several : {Line{"--dp", "2"}, Line{"--layer-split", "2"},
                                Line{"--devices", "cpu,cpu"}, Line{"--layout", "auto"}}) {
      auto line = flags;
      line.insert(line.end(), several.begin(), several.end());
      EXPECT_THAT(unused(line), IsEmpty()) << testing::PrintToString(line);
    }
  }
}

TEST(UnusedFlags, SayThatSharesNeedSeveralRanks) {
  EXPECT_THAT(unused({"--shares", "auto"}), ElementsAre("--shares is not used: there is one rank"));
  EXPECT_THAT(unused({"--shares", "auto", "--devices", "cpu,cpu"}), IsEmpty());
}

// Requests to a server bring LoRAs and pictures of their own.
TEST(UnusedFlags, SayWhatTheRequestDoesNotBring) {
  const auto* const mode = "--lora-mode is not used: there is no --lora";
  EXPECT_THAT(unused({"--lora-mode", "fused"}), ElementsAre(mode));
  EXPECT_THAT(unused({"--lora-mode", "fused", "--lora", "ink"}), IsEmpty());
  EXPECT_THAT(unused({"--lora-mode", "auto"}), IsEmpty());
  EXPECT_THAT(unused({"--reference-cache", "off"}), IsEmpty()) << "some models keep their text";
  EXPECT_THAT(unused({"--max-pixels", "1000"}),
              ElementsAre("--max-pixels is not used: there is no input picture"));
  EXPECT_THAT(unused({"--max-pixels", "1000", "--init", "a.png"}), IsEmpty());
  EXPECT_THAT(unused_in<ServeFlags>({"serve"}, {"--lora-mode", "unmerged"}), IsEmpty());
  EXPECT_THAT(unused_in<BenchFlags>({"bench"}, {"--lora-mode", "fused"}), ElementsAre(mode));
  EXPECT_THAT(unused_in<BenchFlags>({"bench", "--sweep", "tp=1,2"}, {"--ring-form", "gather"}),
              ElementsAre("--ring-form is not used: there is no --ring"));
  EXPECT_THAT(unused_in<BenchFlags>({"bench", "--sweep", "ring=1,2"}, {"--ring-form", "gather"}),
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
