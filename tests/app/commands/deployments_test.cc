// The same flags give the same deployment through every command, and through the library.
#include "app/commands/deployments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/mesh.h"

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

}  // namespace braid::deployments_test
