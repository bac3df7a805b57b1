// `braid bench`: plausible figures, and refusals before anything is loaded.
#include <sys/stat.h>

#include <algorithm>

#include "base/file.h"
#include "workplace.h"

namespace braid::bench_test {

using testing::HasSubstr;

class Bench : public Workplace {};

TEST_F(Bench, TimesTheBundledModelUnderALayout) {
  const auto finished = braid({"bench", "-m", BRAID_SOURCE_DIR "/models/demo", "--tp", "2",
                               "--size", "64x64", "--runs", "3", "--json"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const auto json = nlohmann::json::parse(finished.out);
  EXPECT_EQ(json["gpus"], 2);
  ASSERT_EQ(json["steps_s"].size(), 3u);
  auto seconds = json["steps_s"].get<std::vector<double>>();
  std::sort(seconds.begin(), seconds.end());
  EXPECT_EQ(json["step_s"], seconds[1]);
  EXPECT_GT(seconds[0], 0);
  // two per double block, one per single block: the bundled model has two and six
  const auto config =
      nlohmann::json::parse(read_file(BRAID_SOURCE_DIR "/models/demo/transformer/config.json"));
  EXPECT_EQ(json["step_traffic"]["tp"]["all_reduces"],
            2 * config["num_layers"].get<int>() + config["num_single_layers"].get<int>());
  EXPECT_TRUE(files().empty());
}

TEST_F(Bench, SaysWhatItTimed) {
  const auto finished =
      braid({"bench", "-m", BRAID_SOURCE_DIR "/models/demo", "--size", "64x64", "--runs", "1"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr(" per evaluation ("));
}

// Keys of the harness used for published figures; other people's tools read them.
TEST_F(Bench, HasTheKeysOfTheReferenceHarness) {
  const auto finished = braid({"bench", "-m", BRAID_SOURCE_DIR "/models/demo", "--ring", "2",
                               "--size", "64x64", "--runs", "2", "--json"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const auto json = nlohmann::json::parse(finished.out);
  EXPECT_EQ(json["config"], "ring 2");
  EXPECT_EQ(json["world_size"], 2);
  EXPECT_EQ(json["ring_degree"], 2);
  EXPECT_EQ(json["steps"], 2);
  EXPECT_EQ(json["size"], "64x64");
  EXPECT_DOUBLE_EQ(json["total_s"].get<double>(),
                   json["steps_s"][0].get<double>() + json["steps_s"][1].get<double>());
  EXPECT_EQ(json["phases"]["load"], json["load_s"]);
  // two threads share one process: reported for both, counted once
  ASSERT_EQ(json["peak_vram_per_gpu_gb"].size(), 2u);
  const auto most = json["peak_vram_max_single_gpu_gb"].get<double>();
  EXPECT_GT(most, 0.01);
  EXPECT_NEAR(json["peak_vram_total_gb"].get<double>(), most, 1e-9);
}

TEST_F(Bench, SweepsComparesAndDraws) {
  const std::vector<std::string> line = {"bench",
                                         "-m",
                                         BRAID_SOURCE_DIR "/models/demo",
                                         "--size",
                                         "64x64",
                                         "--runs",
                                         "2",
                                         "--sweep",
                                         "tp=1,13",
                                         "--sweep",
                                         "offload=none,block",
                                         "--threads",
                                         "1"};
  auto arguments = line;
  arguments.insert(arguments.end(), {"--json", "--plot", "bars.svg"});
  const auto finished = braid(arguments);
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.err, HasSubstr("2 of 4 configurations failed"));
  auto json = nlohmann::json::parse(finished.out);
  ASSERT_EQ(json.size(), 4u);
  EXPECT_EQ(json[0]["config"], "one rank");
  EXPECT_EQ(json[1]["config"], "one rank --offload block");
  EXPECT_EQ(json[2]["config"], "tp 13");
  EXPECT_THAT(json[2]["failure"].get<std::string>(), HasSubstr("13"));
  const auto svg = read_file(folder_ / "bars.svg");
  EXPECT_THAT(svg, HasSubstr("tp 1, offload block"));
  EXPECT_THAT(svg, testing::Not(HasSubstr("tp 13")));
  EXPECT_FALSE(json[2].contains("size"));

  // a thousand times slower than before, then a thousand times faster
  for (const double factor : {1e-3, 1e3}) {
    auto before = json;
    for (auto& result : before)
      if (result.contains("step_s")) {
        result["step_s"] = result["step_s"].get<double>() * factor;
        for (auto& seconds : result["steps_s"]) seconds = seconds.get<double>() * factor;
      }
    write("before.json", before.dump());
    const auto compared = braid({"bench", "-m", BRAID_SOURCE_DIR "/models/demo", "--size", "64x64",
                                 "--runs", "2", "--threads", "1", "--against", "before.json"});
    EXPECT_EQ(compared.exit_code, factor < 1 ? 1 : 0) << compared.err;
    EXPECT_THAT(compared.err,
                HasSubstr(factor < 1 ? "1 of 1 results are slower than in before.json" : ""));
    EXPECT_THAT(compared.out, HasSubstr(factor < 1 ? " x slower than the earlier result"
                                                   : " x of the earlier result"));
  }
}

TEST_F(Bench, RefusesToSweepWhereALauncherStartedTheRanks) {
  Subprocess running({.arguments = {"bench", "--sweep", "tp=1,2"},
                      .environment = {"RANK=0", "LOCAL_RANK=0", "WORLD_SIZE=2",
                                      "MASTER_ADDR=127.0.0.1", "MASTER_PORT=1"},
                      .folder = folder_});
  expect_refusal(running.finish(), 2, "launch braid bench once per configuration");
}

TEST_F(Bench, RefusesResultsThatAreNone) {
  write("empty.json", "{}");
  write("broken.json", "[{");
  for (const auto* const file : {"empty.json", "broken.json", "nowhere.json"})
    expect_bad_input({"bench", "-m", BRAID_SOURCE_DIR "/models/demo", "--against", file}, file);
  ASSERT_EQ(::mkfifo((folder_ / "pipe.json").c_str(), 0600), 0);
  expect_bad_input({"bench", "-m", BRAID_SOURCE_DIR "/models/demo", "--against", "pipe.json"},
                   "it is a pipe or a device");
  write("other.json", R"({"step_s": 1, "steps_s": [1], "config": "tp 2"})");
  const auto finished = braid({"bench", "-m", BRAID_SOURCE_DIR "/models/demo", "--size", "64x64",
                               "--runs", "1", "--against", "other.json"});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_THAT(finished.err, HasSubstr("no result of the same configuration"));
}

// The times are printed whatever goes wrong with the comparison: measuring them took a while.
TEST_F(Bench, PrintsTimesThatItCannotCompare) {
  std::filesystem::create_directory_symlink(BRAID_SOURCE_DIR "/models/demo", folder_ / "demo");
  std::vector<std::string> line = {"bench",    "-m",     BRAID_SOURCE_DIR "/models/demo",
                                   "--size",   "64x64",  "--runs",
                                   "1",        "--json", "--sweep",
                                   "threads=1"};
  const auto finished = braid(line);
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const auto json = nlohmann::json::parse(finished.out);
  ASSERT_TRUE(json.is_array());  // with one element, as for any sweep
  EXPECT_EQ(json[0]["setting"], "threads 1");
  write("before.json", finished.out);
  line[2] = "./demo";  // the same model by another name
  line.back() = "threads=1,2";
  line.insert(line.end(), {"--against", "before.json", "--tolerance", "1000"});
  const auto compared = braid(line);
  EXPECT_EQ(compared.exit_code, 2);
  EXPECT_THAT(compared.err, HasSubstr("threads was 1 and is 2"));
  const auto results = nlohmann::json::parse(compared.out);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_TRUE(results[0].contains("against"));
  EXPECT_TRUE(results[1].contains("step_s"));

  write("before.svg", finished.out);
  std::ranges::replace(line, std::string("before.json"), std::string("before.svg"));
  line.insert(line.end(), {"--plot", "./before.svg"});
  expect_bad_input(line, "--plot would overwrite");
  EXPECT_EQ(read_file(folder_ / "before.svg"), finished.out);
}

TEST_F(Bench, RefusesWhatItCannotTime) {
  expect_bad_input({"bench", "--synthetic", "flux9"},
                   "synthetic weights have the shapes of flux1-dev, ");
  expect_bad_input({"bench", "--double", "2"},
                   "numbers of blocks can be chosen for synthetic weights only");
  expect_bad_input({"bench", "--synthetic", "flux1-dev", "--double", "0"}, "--double");
  for (const char* const flag : {"--model", "--components", "--vae-file", "--controlnet"})
    expect_bad_input({"bench", "--synthetic", "flux1-dev", flag, "x"},
                     std::string("it cannot be given with ") + flag);
  expect_bad_input({"bench", "--device", "cpu", "--devices", "cpu,cpu"}, "both --device and");
  expect_bad_input({"bench", "--runs", "0"}, "--runs");
  expect_bad_input({"bench", "-m", "nowhere"}, "there is no model at nowhere");
}

}  // namespace braid::bench_test
