// `braid info`, `--help` and the list of flags.
#include <regex>

#include "workplace.h"

namespace braid {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

class Info : public Workplace {
 protected:
  Json info(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"info", "--json"});
    const auto finished = braid(std::move(arguments));
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return Json::parse(finished.out);
  }
  std::vector<std::string> flags_of(const std::string& command) const {
    const auto help = braid({command, "--help"}).out;
    const std::regex flag("\n  (-[-a-z0-9,]*)");
    std::vector<std::string> flags;
    for (std::sregex_iterator it(help.begin(), help.end(), flag), end; it != end; ++it)
      flags.push_back((*it)[1]);
    return flags;
  }
};

TEST_F(Info, DescribesThisMachine) {
  const auto json = info({});
  EXPECT_EQ(json["version"], BRAID_VERSION);
  EXPECT_THAT(json["libtorch"]["version"].get<std::string>(), testing::StartsWith("2."));
  EXPECT_GT(json["devices"]["cpu"]["memory_bytes"].get<double>(), 1e8);
  EXPECT_GE(json["cpu"]["threads"].get<int>(), 1);
  EXPECT_FALSE(json["cpu"]["features"].empty());
  EXPECT_THAT(json["bundled_model"].get<std::string>(), testing::EndsWith("models/demo"));
}

TEST_F(Info, DescribesAModel) {
  const auto model = info({"-m", BRAID_SOURCE_DIR "/models/demo"})["model"];
  const auto& transformer = model["parts"]["transformer"];
  EXPECT_EQ(transformer["config"]["num_layers"], 2);
  EXPECT_EQ(transformer["dtype"], "bfloat16");
  EXPECT_GT(transformer["parameters"].get<int>(), 6'000'000);
  EXPECT_EQ(transformer["bytes"].get<int>(), 2 * transformer["parameters"].get<int>());
  EXPECT_EQ(model["defaults"]["num_inference_steps"], 20);
  EXPECT_TRUE(model["scheduler"].is_object());
}

TEST_F(Info, IsReadableWithoutJson) {
  const auto text = braid({"info", "-m", BRAID_SOURCE_DIR "/models/demo"}).out;
  EXPECT_THAT(text, HasSubstr("version        " BRAID_VERSION "\n"));
  EXPECT_THAT(text, testing::ContainsRegex("memory_bytes  .* GB\n"));
  EXPECT_THAT(text, testing::ContainsRegex("parameters  [0-9],[0-9]{3},[0-9]{3}\n"));
}

TEST_F(Info, TellsItsVersion) {
  const auto finished = braid({"--version"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.out, "braid " BRAID_VERSION "\n");
}

TEST_F(Info, HelpGoesToStandardOutputAndFitsAScreen) {
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{"--help"},
                                             {"-h"},
                                             {"generate", "-h"},
                                             {"info", "-h"},
                                             {"generate", "--steps", "0", "--help"}}) {
    const auto finished = braid(arguments);
    EXPECT_EQ(finished.exit_code, 0);
    EXPECT_EQ(finished.err, "");
    EXPECT_THAT(finished.out, HasSubstr("Usage: braid"));
    EXPECT_THAT(finished.out, testing::Not(testing::ContainsRegex("[^\n]{96}")));
  }
}

// Frozen: scripts of other people use these names.
TEST_F(Info, TheFlagsAreThese) {
  EXPECT_THAT(
      flags_of("generate"),
      ElementsAre("-h,--help", "--prompt-file", "--prompt-2", "--negative-prompt",
                  "--negative-prompt-2", "--true-cfg", "--guidance-rescale", "--cfg-norm-cap",
                  "--max-sequence-length", "--size", "--steps", "--guidance", "--seed",
                  "-n,--num-images", "--batch-size", "-o,--output", "--latents", "--dump",
                  "-m,--model", "--components", "--dtype", "--device", "--devices", "--threads",
                  "--graph", "--vae-tiling", "--tp", "--ring", "--ulysses", "--cfg-parallel",
                  "--dp", "--layer-split", "--tp-modulation", "--text-encoder", "--vae",
                  "--ring-form", "--deadline", "--layout", "--quantize", "--quantize-text",
                  "--quantize-skip", "--offload", "--offload-text", "--offload-vae",
                  "--offload-group", "--prefetch", "--resident", "--residency", "--pin",
                  "--offload-dir", "--disk-reads", "--json", "-q,--quiet", "-v,--verbose"));
  EXPECT_THAT(
      flags_of("convert"),
      ElementsAre("-h,--help", "-m,--model", "--components", "-o,--output", "--single-file",
                  "--dtype", "--quantize", "--quantize-text", "--quantize-skip", "-q,--quiet"));
  EXPECT_THAT(flags_of("info"), ElementsAre("-h,--help", "-m,--model", "--components", "--json"));
}

}  // namespace
}  // namespace braid
