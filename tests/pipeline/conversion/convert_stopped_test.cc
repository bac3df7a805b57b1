// Conversions that are killed, run out of disk or find changed files: the final result equals that
// of an undisturbed one.
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "message_of.h"
#include "pipeline/conversion/convert.h"
#include "pipeline/conversion/shards.h"
#include "temporary_folder.h"
#include "weights/files/safetensors_writer.h"

namespace braid::convert_stopped_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

using Contents = std::map<fs::path, std::string>;

Contents contents_of(const fs::path& folder) {
  Contents contents;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      contents[fs::relative(entry.path(), folder)] = read_file(entry.path());
  return contents;
}

// The result of a run with these options on top of what it finds.
Contents made_by(const ConvertOptions& options) {
  convert(options);
  return contents_of(options.out);
}

class Interrupted : public testing::Test {
 protected:
  ConvertOptions to(const std::string& name) const {
    return {.model = model_,
            .out = folder_ / name,
            .memory = {.quantize = Quantize::kInt8, .quantize_text = Quantize::kInt8}};
  }
  // Progress in bytes: after the transformer is written, and after the text encoder too.
  static constexpr std::int64_t kOneShard = 1, kAllShards = 13'000'000;

  // Exits silently once `bytes` or more have been reported.
  void run_and_die(const ConvertOptions& options, std::int64_t bytes) const {
    const auto child = ::fork();
    if (child == 0) {
      at::set_num_threads(1);  // the parent's threads do not exist here
      const Hooks hooks{.progress = [&](const Progress& p) {
        if (p.done >= bytes) ::_exit(9);
      }};
      convert(options, hooks);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 9);
  }
  std::string failure_within(rlim_t most) const;

  const fs::path model_ = fs::path(BRAID_SOURCE_DIR) / "models/demo";
  TemporaryFolder folder_;
};

// The error message if no file may exceed `most` bytes.
std::string Interrupted::failure_within(rlim_t most) const {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{most, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  std::string sentence;
  try {
    convert(to("out"));
  } catch (const Error& e) {
    sentence = e.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  return sentence;
}

TEST_F(Interrupted, ByADeathItEndsAsIfItHadNotBeen) {
  const auto want = made_by(to("whole"));
  for (const auto bytes : {kOneShard, kAllShards}) {
    const auto name = "dead_" + std::to_string(bytes);
    run_and_die(to(name), bytes);
    EXPECT_FALSE(fs::exists(folder_ / name));
    EXPECT_EQ(made_by(to(name)), want) << bytes;
  }
}

using SlowInterrupted = Interrupted;

TEST_F(SlowInterrupted, AtAnyTimeItEndsAsIfItHadNotBeen) {
  const auto want = made_by(to("whole"));
  for (const int milliseconds : {3, 10, 30, 60, 100, 150}) {
    const auto child = ::fork();
    if (child == 0) {
      at::set_num_threads(1);
      convert(to("out"));
      ::_exit(0);
    }
    ::usleep(unsigned(milliseconds) * 1000);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    if (fs::exists(folder_ / "out")) break;  // it finished first
  }
  if (!fs::exists(folder_ / "out")) convert(to("out"));
  EXPECT_EQ(contents_of(folder_ / "out"), want);
}

TEST_F(SlowInterrupted, AndDamagedMeanwhileAShardIsWrittenAnew) {
  const auto want = made_by(to("whole"));
  run_and_die(to("out"), 1);
  const auto shard = folder_ / "out.partial/transformer/diffusion_pytorch_model.safetensors";
  std::fstream file(shard, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  file.put(char(file.peek() ^ 1));
  file.close();
  EXPECT_EQ(made_by(to("out")), want);
}

// A changed file with the same path, size and time.
TEST_F(SlowInterrupted, AndTheModelChangedItMixesNothing) {
  const auto source = folder_ / "source";
  fs::copy(model_, source, fs::copy_options::recursive);
  auto options = to("out");
  options.model = source;
  run_and_die(options, 1);
  const auto weights = source / "transformer/diffusion_pytorch_model.safetensors";
  ASSERT_TRUE(fs::exists(weights));
  const auto time = fs::last_write_time(weights);
  std::fstream file(weights, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-1, std::ios::end);
  const char byte = char(file.get() ^ 0x40);
  file.seekp(-1, std::ios::end);
  file.put(byte);
  file.close();
  fs::last_write_time(weights, time);
  const auto got = made_by(options);
  options.out = folder_ / "whole";
  EXPECT_EQ(got, made_by(options));
}

// The state that two concurrent runs once left behind.
TEST_F(SlowInterrupted, ItTakesNoShardOfAnotherRecipe) {
  run_and_die(to("out"), kAllShards);
  auto dense = to("dense");
  dense.memory = {};
  run_and_die(dense, kOneShard);
  fs::copy_file(folder_ / "dense.partial/conversion.json", folder_ / "out.partial/conversion.json",
                fs::copy_options::overwrite_existing);
  dense.out = folder_ / "out";
  const auto got = made_by(dense);
  dense.out = folder_ / "whole";
  EXPECT_EQ(got, made_by(dense));
}

TEST_F(Interrupted, ItSaysThatItStartsAnewWithOtherOptions) {
  run_and_die(to("out"), kOneShard);
  auto dense = to("out");
  dense.memory.quantize = Quantize::kNone;
  std::string warning;
  convert(dense, {.warning = [&](const std::string& sentence) { warning = sentence; }});
  EXPECT_THAT(warning, HasSubstr("another quantize: "));
  EXPECT_THAT(warning, HasSubstr("starts over"));
}

TEST_F(Interrupted, TheModelMayBeNamedInAnotherWay) {
  run_and_die(to("out"), kOneShard);
  auto options = to("out");
  options.model = model_ / "../demo/";
  std::string warning;
  convert(options, {.warning = [&](const std::string& sentence) { warning = sentence; }});
  EXPECT_EQ(warning, "");
}

TEST_F(SlowInterrupted, ByAFullDiskItSaysSoAndGoesOn) {
  for (const rlim_t most : {100'000, 1'000'000}) {
    EXPECT_THAT(failure_within(most), HasSubstr("cannot write")) << most;
    EXPECT_FALSE(fs::exists(folder_ / "out"));
  }
  run_and_die(to("out"), kAllShards);
  EXPECT_THAT(failure_within(1'500'000), HasSubstr("cannot write")) << "the autoencoder";
  EXPECT_EQ(made_by(to("out")), made_by(to("whole")));
}

// Copies of files that the model no longer has, and shards of it when it had more.
TEST_F(Interrupted, ItKeepsNothingThatTheModelNoLongerHas) {
  const auto want = made_by(to("whole"));
  run_and_die(to("out"), kOneShard);
  const fs::path partial = folder_ / "out.partial";
  for (const fs::path left :
       {"README.md", "text_encoder/model.safetensors.index.json", "old/config.json",
        "transformer/diffusion_pytorch_model.safetensors.index.json",
        "transformer/diffusion_pytorch_model-00001-of-00002.safetensors",
        "transformer/diffusion_pytorch_model-00001-of-00002.safetensors.note"}) {
    fs::create_directories((partial / left).parent_path());
    write_file(partial / left, "left over");
  }
  EXPECT_EQ(made_by(to("out")), want);
}

// A conversion takes long enough for somebody to write a file of that name.
TEST_F(Interrupted, ByAFileOfItsNameItLeavesThatAlone) {
  const auto out = folder_ / "flux.safetensors";
  const Hooks hooks{.progress = [&](const Progress&) { write_file(out, "somebody's"); }};
  const auto refusal = message_of([&] {
    convert({.model = model_, .out = out, .form = ConvertOptions::Form::kSingleFile}, hooks);
  });
  EXPECT_THAT(refusal, HasSubstr("exists"));
  EXPECT_EQ(read_file(out), "somebody's");
  fs::remove(out);
  convert({.model = model_, .out = out, .form = ConvertOptions::Form::kSingleFile});
  EXPECT_FALSE(Checkpoint::open_file(out).tensors().empty());
}

class Shards : public testing::Test {
 protected:
  Shards() {
    write_file(folder_ / "a.safetensors",
               write_safetensors({{"a.weight", at::ones({2, 3})}, {"b.weight", at::zeros({4})}}));
  }
  void write(std::int64_t shard_bytes) const {
    const auto checkpoint = Checkpoint::open_file(folder_ / "a.safetensors");
    std::vector<SurveyedTensor> asked;
    const auto survey = Weights(checkpoint, {}, {}).surveyed(asked);
    (void)(survey / "a").tensor("weight", {2, 3});
    (void)(survey / "b").tensor("weight", {4});
    ShardJob job{.asked = {},
                 .source = Weights(checkpoint, {}, {}),
                 .names = {},
                 .folder = folder_ / "out",
                 .stem = "model",
                 .shard_bytes = shard_bytes};
    for (auto& one : asked) job.asked.push_back({std::move(one)});
    write_shards(job);
    remove_notes(job.folder);
  }
  TemporaryFolder folder_;
};

// huggingface_hub's total_size: the bytes of all tensors.
TEST_F(Shards, HaveAnIndexWithTheirSize) {
  write(1);
  const auto index = read_json(folder_ / "out/model.safetensors.index.json");
  EXPECT_EQ(index["metadata"]["total_size"], 6 * 4 + 4 * 4);
  EXPECT_EQ(index["weight_map"]["b.weight"], "model-00002-of-00002.safetensors");
}

// A single file named conversion.safetensors lies beside the recipe, conversion.json.
TEST_F(Shards, LeaveWhatOnlyBeginsAlike) {
  write(1);
  write_file(folder_ / "out/model.json", "{}");
  write(1000);
  EXPECT_EQ(read_file(folder_ / "out/model.json"), "{}");
}

// Otherwise diffusers would read them by their index.
TEST_F(Shards, OfAnEarlierRunAreRemoved) {
  write(1);
  write(1000);
  const auto left = contents_of(folder_ / "out");
  ASSERT_EQ(left.size(), 1);
  EXPECT_EQ(left.begin()->first, "model.safetensors");
}

}  // namespace braid::convert_stopped_test
