// The same flags give the same deployment through every command, and through the library.
#include "app/commands/deployments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iomanip>
#include <regex>
#include <sstream>

#include "app/print/failure.h"
#include "base/file.h"
#include "comm/mesh.h"
#include "message_of.h"
#include "pipeline/devices/specs.h"
#include "pipeline/request/settings.h"

namespace braid::deployments_test {

const std::string kDemo = std::string(BRAID_SOURCE_DIR) + "/models/demo";

template <class Flags>
Flags parsed(std::vector<const char*> line, const std::vector<std::string>& flags) {
  line.insert(line.begin(), "braid");
  for (const auto& flag : flags) line.push_back(flag.c_str());
  return std::get<Flags>(parse_command_line(int(line.size()), line.data()));
}

// What a deployment settles, in words.
std::string told(const Deployment& d) {
  std::ostringstream text;
  const auto& m = d.options.memory;
  const auto& o = m.offload;
  text << d.options.model.string() << ' ' << d.files->folder.string() << ' '
       << d.family->description().family << ' ' << to_string(d.degrees()) << ' ' << d.dtype;
  for (const auto& device : d.devices) text << ' ' << device;
  for (const auto& device : d.places.devices) text << ' ' << device;
  text << " quantize " << int(m.quantize) << int(m.quantize_text) << " offload "
       << int(o.transformer) << int(o.text) << int(o.vae) << ' ' << o.blocks << ' ' << o.prefetch
       << ' ' << o.resident << ' ' << int(o.residency) << int(o.pin) << ' ' << o.folder;
  return text.str();
}

Deployment generated(const std::vector<std::string>& flags) {
  const auto parsed_flags = parsed<GenerateFlags>({"generate", "a"}, flags);
  return deployed(parsed_flags, {.prompts = {"a"}});
}
Deployment served(const std::vector<std::string>& flags) {
  const auto parsed_flags = parsed<ServeFlags>({"serve"}, flags);
  return deployed(parsed_flags, parsed_flags.models.front());
}
Deployment verified(const std::vector<std::string>& flags) {
  return deployed(parsed<VerifyFlags>({"verify"}, flags));
}
Deployment benched(const std::vector<std::string>& flags) {
  return deployed(parsed<BenchFlags>({"bench"}, flags).configurations.front());
}

TEST(Deployments, AreTheSameThroughEveryCommandAndTheLibrary) {
  const std::vector<std::vector<std::string>> lines = {
      {},
      {"--tp", "2", "--dtype", "bfloat16"},
      {"--devices", "cpu,cpu", "--ring", "2"},
      {"--quantize", "int8", "--offload", "block", "--resident", "2"},
      {"--preset", "rx-7800-xt", "--quantize", "none", "--prefetch", "2"}};
  for (auto flags : lines) {
    flags.insert(flags.end(), {"-m", kDemo});
    const auto wanted = told(generated(flags));
    EXPECT_EQ(told(served(flags)), wanted);
    EXPECT_EQ(told(verified(flags)), wanted);
    EXPECT_EQ(told(benched(flags)), wanted);
    auto options = parsed<GenerateFlags>({"generate", "a"}, flags).options;
    if (options.memory.preset.empty()) {
      EXPECT_EQ(told(deploy(options)), wanted);
    }
  }
}

// One run has no use for what it encoded, and its budget no room.
TEST(Deployments, RememberPromptsForLaterRequestsOnly) {
  EXPECT_EQ(generated({"-m", kDemo}).options.condition_cache, 0);
  EXPECT_GT(served({"-m", kDemo}).options.condition_cache, 0);
}

TEST(Deployments, KeepToABudgetAsTheLibraryDoes) {
  const std::vector<std::string> flags = {"-m", kDemo, "--memory", "215MB", "--dtype", "float32"};
  const auto wanted = told(generated(flags));
  PipelineOptions options{.model = kDemo, .dtype = Dtype::kFloat32};
  options.memory.budget.device = 215'000'000;
  EXPECT_EQ(told(deploy(options)), wanted);
  options.memory.fit = Fit::kAuto;
  EXPECT_EQ(told(deploy(options)), wanted);
}

TEST(Deployments, OfPlansAreOnTheDevicesThatTheyDescribe) {
  const auto flags = parsed<PlanFlags>({"plan"}, {"-m", "flux1-dev", "--devices", "2xh100"});
  const auto d = deployed(flags);
  EXPECT_EQ(d.files, nullptr);
  EXPECT_EQ(d.devices.front().str(), "cuda:0");
  EXPECT_FALSE(d.memory_plan);
}

TEST(Deployments, OfPicturesDrawOneFrame) {
  const auto flags = parsed<GenerateFlags>({"generate", "a"}, {"-m", kDemo});
  EXPECT_EQ(message_of([&] { (void)deployed(flags, {.prompts = {"a"}, .frames = 3}); }),
            "this model draws pictures, of one frame each: 3 frames were asked for");
  EXPECT_EQ(message_of([&] { (void)deployed(flags, {.prompts = {"a"}, .frames = 1}); }), "");
}

TEST(Deployments, WarnOnceOfAnEndOfTrueGuidanceThatIsOff) {
  const auto limits = generated({"-m", kDemo}).family->description().limits;
  std::vector<std::string> warnings;
  const Warn warn = [&](const std::string& sentence) { warnings.push_back(sentence); };
  const Request off{.prompts = {"a"}, .cfg_until = 0.5};
  const auto again = completed(off, settle(off, limits, warn));
  EXPECT_THAT(warnings, testing::ElementsAre(testing::HasSubstr("true guidance is off")));
  (void)settle(again, limits, warn);
  EXPECT_EQ(warnings.size(), 1u) << "completed requests are settled again";
  const Request on{.prompts = {"a"}, .negative_prompt = "b", .true_cfg = 2, .cfg_until = 0.5};
  EXPECT_EQ(completed(on, settle(on, limits, warn)).cfg_until, 0.5);
  EXPECT_EQ(warnings.size(), 1u);
}

TEST(Deployments, WarnOfLayersThatNoTransformerHas) {
  const auto told_of = [](const std::string& layers) {
    const auto flags = parsed<GenerateFlags>(
        {"generate", "a"}, {"-m", kDemo, "--quantize", "int8", "--quantize-skip", layers});
    std::vector<std::string> sentences;
    (void)deployed(
        flags, {.prompts = {"a"}}, [](const std::string& choice) { ADD_FAILURE() << choice; },
        [&](const std::string& sentence) { sentences.push_back(with_flags(sentence)); });
    return sentences;
  };
  EXPECT_THAT(told_of("img_in,double_blocks.*.img_mod.lin,final_layer.**"), testing::IsEmpty());
  EXPECT_THAT(told_of("img_in,zzz,double_blocks.99.img_mod.lin"),
              testing::ElementsAre("--quantize-skip zzz names no layer of this model",
                                   "--quantize-skip double_blocks.99.img_mod.lin names no layer of "
                                   "this model"));
}

// docs/memory.md has a table of them, for FLUX.1-dev.
TEST(Deployments, TakeWhatTheDocumentationSays) {
  const auto page = read_file(std::string(BRAID_SOURCE_DIR) + "/docs/memory.md");
  const std::regex row(R"(\n\| (GPU|CPU), .* \| (int8, )?`(.*)` \| ([0-9.]+) \| ([0-9.]*) ?\|)");
  int rows = 0;
  for (std::sregex_iterator it(page.begin(), page.end(), row), end; it != end; ++it, ++rows) {
    const bool is_gpu = (*it)[1] == "GPU";
    std::vector<std::string> flags = {"--device", is_gpu ? "cuda" : "cpu", "--dtype", "bfloat16"};
    if ((*it)[2].matched)
      for (const auto* const flag : {"--quantize", "int8", "--quantize-text", "int8"})
        flags.emplace_back(flag);
    std::istringstream given((*it)[3].str());
    for (std::string flag; given >> flag;) flags.push_back(flag);
    auto asked = parsed<GenerateFlags>({"generate", "a"}, flags);
    asked.options.memory.offload.folder =
        "pages";  // not a temporary one, which needs a disk with room
    const auto plan = *deploy({.pipeline = asked.options,
                               .stated = asked.stated,
                               .request = Request{.prompts = {"a"}},
                               .synthetic = "flux1-dev"},
                              described_host(devices_named("", is_gpu ? "h100" : "cpu")))
                           .memory_plan;
    const auto gigabytes = [](std::int64_t bytes) {
      std::ostringstream text;
      text << std::fixed << std::setprecision(1) << double(bytes) / 1e9;
      return text.str();
    };
    EXPECT_EQ((*it)[4], gigabytes(plan.device_peak)) << (*it)[0];
    EXPECT_EQ((*it)[5], is_gpu ? gigabytes(plan.host_peak) : "") << (*it)[0];
  }
  EXPECT_EQ(rows, 7);
}

}  // namespace braid::deployments_test
