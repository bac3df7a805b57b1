// Several configurations from one command line.
#include "app/flags/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/flags/flags.h"
#include "app/print/bench_report.h"
#include "message_of.h"

namespace braid::sweep_test {

using testing::HasSubstr;

BenchFlags bench_flags(std::vector<const char*> arguments) {
  std::vector<const char*> argv = {"braid", "bench"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return std::get<BenchFlags>(parse_command_line(int(argv.size()), argv.data()));
}

std::string refusal(const std::vector<const char*>& arguments) {
  return message_of([&] { (void)bench_flags(arguments); });
}

TEST(Sweep, TakesAllCombinationsTheLastFastest) {
  std::vector<std::string> names;
  for (const auto& setting : settings_of({{"--offload", {"none", "block"}}, {"--tp", {"1", "2"}}}))
    names.push_back(to_string(setting));
  EXPECT_THAT(names, testing::ElementsAre("offload none, tp 1", "offload none, tp 2",
                                          "offload block, tp 1", "offload block, tp 2"));
  EXPECT_EQ(settings_of({}).size(), 1u);
}

TEST(Sweep, IsReadAsTheFlagsThemselvesAre) {
  const auto flags = bench_flags({"--sweep", "quantize=none,int8", "--runs", "7", "--sweep",
                                  "size=64x64,128x64", "--ring", "2"});
  ASSERT_EQ(flags.configurations.size(), 4u);
  const auto& last = flags.configurations[3];
  EXPECT_EQ(last.denoiser.pipeline.memory.quantize, Quantize::kInt8);
  EXPECT_EQ(last.options.probe.width, 128);
  EXPECT_EQ(last.options.runs, 7);
  EXPECT_EQ(last.denoiser.pipeline.layout.ring, 2);
  EXPECT_EQ(flags.configurations[0].denoiser.pipeline.memory.quantize, Quantize::kNone);
  EXPECT_EQ(flags.configurations[0].options.probe.width, 64);
}

TEST(Sweep, WinsOverAPresetAsFlagsDo) {
  const auto flags = bench_flags({"--preset", "rx-7800-xt", "--sweep", "offload=none,model"});
  for (const auto& configuration : flags.configurations)
    EXPECT_TRUE(configuration.denoiser.stated.transformer && configuration.denoiser.stated.vae);
}

TEST(Sweep, KnowsFlagsByAllTheirLongNames) {
  for (const auto* const sweep : {"pp=1,2", "layer-split=1,2", "pp=1, 2"}) {
    const auto flags = bench_flags({"--sweep", sweep});
    ASSERT_EQ(flags.configurations.size(), 2u) << sweep;
    EXPECT_EQ(flags.configurations[1].denoiser.pipeline.layout.pp, 2) << sweep;
  }
  EXPECT_THAT(refusal({"--sweep", "pp=1", "--sweep", "layer-split=2"}),
              HasSubstr("two --sweep name --pp"));
}

TEST(Sweep, AddsToFlagsThatMayBeGivenSeveralTimes) {
  const auto flags = bench_flags({"--lora", "a", "--sweep", "lora=b,c"});
  ASSERT_EQ(flags.configurations.size(), 2u);
  const auto& adapters = flags.configurations[1].denoiser.pipeline.adapters;
  ASSERT_EQ(adapters.size(), 2u);
  EXPECT_EQ(adapters[1].file, "c");
}

TEST(Sweep, LeavesOneConfigurationWithoutIt) {
  const auto flags = bench_flags({"--tp", "2"});
  ASSERT_EQ(flags.configurations.size(), 1u);
  EXPECT_EQ(flags.configurations[0].denoiser.pipeline.layout.tp, 2);
}

TEST(Sweep, RefusesWhatIsNone) {
  for (const auto* const text : {"", "tp", "tp=", "=1", "tp=1,", "--tp=1", "tp=,1"})
    EXPECT_THAT(refusal({"--sweep", text}),
                HasSubstr("--sweep should be a flag and its values, as in offload=none,block"))
        << text;
  EXPECT_THAT(refusal({"--sweep", "of=1"}),
              HasSubstr("--sweep of: braid bench has no flag '--of'"));
  EXPECT_THAT(refusal({"--sweep", "offloat=none"}), HasSubstr("(did you mean --offload?)"));
  EXPECT_THAT(refusal({"--sweep", "tp=1,x"}),
              HasSubstr("--sweep tp should be a whole number from 1 to 1024, it is 'x'"));
  EXPECT_THAT(refusal({"--sweep", "tp=1", "--sweep", "tp=2"}), HasSubstr("two --sweep name --tp"));
}

TEST(Sweep, RefusesWhatIsOfAllResultsAndWhatHasCommas) {
  for (const auto* const text :
       {"against=a.json", "tolerance=1,2", "plot=a.svg", "json=1", "sweep=tp"})
    EXPECT_THAT(refusal({"--sweep", text}), HasSubstr("it is about all results together")) << text;
  for (const auto* const text : {"devices=cuda:0,cuda:1", "quantize-skip=img_in,txt_in"})
    EXPECT_THAT(refusal({"--sweep", text}), HasSubstr("its own value contains commas")) << text;
}

// Ten sweeps of a hundred values would exceed memory.
TEST(Sweep, RefusesTooManyBeforeTheyAreMade) {
  const std::vector<std::string> hundred(100, "1");
  std::vector<Sweep> sweeps;
  for (int i = 0; i < 10; ++i) sweeps.push_back({"--flag" + std::to_string(i), hundred});
  try {
    (void)settings_of(sweeps);
    ADD_FAILURE() << "";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("more than 1000 configurations"));
  }
}

TEST(Sweep, NamesItsSettings) {
  const auto flags = bench_flags({"--sweep", "dtype=float32,bfloat16", "--sweep", "threads=1"});
  EXPECT_EQ(flags.configurations[1].setting, "dtype bfloat16, threads 1");
  EXPECT_TRUE(bench_flags({"--sweep", "tp=1"}).is_sweep);
  EXPECT_FALSE(bench_flags({}).is_sweep);
}

TEST(BenchFlags, AreRefusedWhereTheyWouldDoNothing) {
  EXPECT_THAT(refusal({"--tolerance", "5"}), HasSubstr("give --against, too"));
  EXPECT_THAT(refusal({"--disk-reads", "direct", "--offload", "block"}),
              HasSubstr("give --offload-dir, too"));
  EXPECT_THAT(refusal({"--offload-dir", "d"}), HasSubstr("give --offload, too"));
  EXPECT_EQ(refusal({"--offload-dir", "d", "--sweep", "offload=none,block"}), "");
  EXPECT_EQ(refusal({"--offload-dir", "d", "--preset", "rx-7800-xt"}), "");
}

TEST(BenchFlags, SayHowFilesAreRead) {
  const auto flags = bench_flags(
      {"--offload", "block", "--offload-dir", "d", "--sweep", "disk-reads=auto,direct,mapped"});
  std::vector<std::string> configs;
  for (const auto& c : flags.configurations) configs.push_back(config_of(c.denoiser.pipeline));
  EXPECT_THAT(configs,
              testing::ElementsAre("one rank --offload block --offload-dir",
                                   "one rank --offload block --offload-dir --disk-reads direct",
                                   "one rank --offload block --offload-dir --disk-reads mapped"));
}

TEST(BenchFlags, SayWhoSums) {
  const auto flags = bench_flags({"--tp", "2", "--sweep", "collectives=ordered,native"});
  std::vector<std::string> configs;
  for (const auto& c : flags.configurations) configs.push_back(config_of(c.denoiser.pipeline));
  EXPECT_THAT(configs, testing::ElementsAre("tp 2", "tp 2 --collectives native"));
  EXPECT_THAT(refusal({"--collectives", "mpi"}),
              HasSubstr("--collectives should be one of ordered, native, it is 'mpi'"));
}

}  // namespace braid::sweep_test
