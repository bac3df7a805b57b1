// `braid info`, `--help` and the list of flags.
#include <regex>
#include <set>

#include "app/machine/environment.h"
#include "has_match.h"
#include "made_topology.h"
#include "workplace.h"

namespace braid::info_test {

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
  const std::set<std::string> products{"baseline",    "avx2",        "avx512",
                                       "avx512_vnni", "avx512_bf16", "amx"};
  EXPECT_TRUE(products.contains(json["cpu"]["products"].get<std::string>()));
  EXPECT_THAT(json["bundled_model"].get<std::string>(), testing::EndsWith("models/demo"));
}

TEST_F(Info, SaysWhichInstructionsAreUsed) {
  const auto limited = [&](const std::string& isa) {
    Subprocess running(
        {.arguments = {"info", "--json"}, .environment = {"BRAID_ISA=" + isa}, .folder = folder_});
    return running.finish();
  };
  const auto baseline = limited("baseline");
  ASSERT_EQ(baseline.exit_code, 0) << baseline.err;
  EXPECT_EQ(Json::parse(baseline.out)["cpu"]["isa"], "baseline");
  EXPECT_EQ(Json::parse(baseline.out)["cpu"]["products"], "baseline");
  const auto wrong = limited("avx1024");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("BRAID_ISA should be one of baseline, avx2"));
}

// A card and an integrated GPU.
TEST_F(Info, SaysWhichPresetWasFoundAndWhatWasSet) {
  const MadeTopology made;
  made.add(0, 0, 64'000'000'000);
  made.add(1, 110001, 17'163'091'968);
  made.add(2, 100306, 536'870'912);
  made.add(3, 110001, 12'868'124'672);
  Subprocess running({.arguments = {"info", "--json"},
                      .environment = {"BRAID_KFD_TOPOLOGY=" + made.path().string(),
                                      "TORCH_BLAS_PREFER_HIPBLASLT=0"},
                      .folder = folder_});
  const auto finished = running.finish();
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const auto json = Json::parse(finished.out);
  EXPECT_EQ(json["gpus"]["0"]["architecture"], "gfx1101");
  EXPECT_EQ(json["gpus"]["0"]["preset"], "rx-7800-xt");
  EXPECT_EQ(json["gpus"]["1"]["architecture"], "gfx1036");
  EXPECT_TRUE(json["gpus"]["1"]["preset"].is_null());
  EXPECT_EQ(json["gpus"]["0"]["data_sheet"], "rx-7800-xt");
  EXPECT_TRUE(json["gpus"]["1"]["data_sheet"].is_null());
  EXPECT_TRUE(json["gpus"]["2"]["data_sheet"].is_null());  // an RX 7700 XT has that chip, too
  const auto& set = json["environment"];
  EXPECT_EQ(set["TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL"]["value"], "1");
  EXPECT_EQ(set["TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL"]["set_by"], "braid");
  EXPECT_EQ(set["HSA_OVERRIDE_GFX_VERSION_2"]["value"], "10.3.0");
  EXPECT_EQ(set["TORCH_BLAS_PREFER_HIPBLASLT"]["value"], "0");
  EXPECT_EQ(set["TORCH_BLAS_PREFER_HIPBLASLT"]["set_by"], "you");
}

// Only a container with a quota shows that the processor time counts that it gets.
TEST_F(Info, ShowsTheVariablesThatAreSet) {
  const auto shown = info({})["environment"];
  const auto wanted = wanted_environment_here();
  ASSERT_EQ(shown.size(), wanted.size());
  for (const auto& variable : wanted)
    EXPECT_EQ(shown.at(variable.name).at("why"), variable.why) << variable.name;
}

TEST_F(Info, ListsThePresets) {
  const auto presets = info({"--presets"});
  EXPECT_EQ(presets["rx-7800-xt"]["for"], Json::array({"gfx1101", "gfx1102"}));
  EXPECT_EQ(presets["rtx-4080"]["flags"], "--quantize int8 --quantize-text int8 --offload model");
  expect_bad_input({"info", "--presets", "a.png"}, "give one of them");
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

// null would say that a field is unset.
TEST_F(Info, TellsNumbersOfAModelThatAreNotFinite) {
  namespace fs = std::filesystem;
  fs::create_directories(folder_ / "model/scheduler");
  for (const auto& entry : fs::directory_iterator(BRAID_SOURCE_DIR "/models/demo"))
    if (entry.path().filename() != "scheduler")
      fs::create_symlink(entry.path(), folder_ / "model" / entry.path().filename());
  write("model/scheduler/scheduler_config.json",
        R"({"_class_name":"FlowMatchEulerDiscreteScheduler","a":-Infinity,"b":[{"c":NaN}],)"
        R"("d":Infinity,"e":null,"f":1.5})");
  const auto scheduler = info({"-m", "model"})["model"]["scheduler"];
  EXPECT_EQ(scheduler["a"], "-Infinity");
  EXPECT_EQ(scheduler["b"][0]["c"], "NaN");
  EXPECT_EQ(scheduler["d"], "Infinity");
  EXPECT_EQ(scheduler["e"], nullptr);
  EXPECT_EQ(scheduler["f"], 1.5);
}

TEST_F(Info, DescribesAFileOfWeights) {
  const auto file = info({BRAID_SOURCE_DIR "/tests/data/parity/blocks/flux.gguf"});
  EXPECT_EQ(file["is"], "a FLUX.1 transformer");
  EXPECT_EQ(file["types"]["Q8_0"]["tensors"], 5);
  EXPECT_GT(file["types"]["Q4_0"]["bytes"].get<int>(), 0);
  const auto scaled = info({BRAID_SOURCE_DIR "/tests/data/parity/blocks/flux_float8.safetensors"});
  EXPECT_EQ(scaled["parameters"], file["parameters"]);
  EXPECT_EQ(scaled["types"]["F8_E4M3"]["tensors"], 27) << "26 weights and a mark";
  EXPECT_EQ(scaled["types"]["F32"]["tensors"], 13) << "scales";
  int tensors = 0, bytes = 0;
  for (const auto& of_type : scaled["types"]) {
    tensors += of_type["tensors"].get<int>();
    bytes += of_type["bytes"].get<int>();
  }
  EXPECT_EQ(scaled["tensors"], tensors);
  EXPECT_EQ(scaled["bytes"], bytes);
  expect_bad_input({"info", "missing.gguf"}, "missing.gguf");
}

TEST_F(Info, SaysThatAFileOfWeightsLacksScales) {
  const auto file = [&](const std::string& type, const std::string& bytes) {
    const auto header = R"({"double_blocks.0.img_attn.qkv.weight":{"dtype":")" + type +
                        R"(","shape":[2,2],"data_offsets":[0,)" + std::to_string(bytes.size()) +
                        "]}}";
    std::string length(8, '\0');
    length[0] = char(header.size());
    return info({write("codes.safetensors", length + header + bytes).string()});
  };
  EXPECT_THAT(file("I8", "1234")["lacking"].get<std::string>(),
              HasSubstr("is stored as I8 codes without a scale per row"));
  EXPECT_FALSE(file("F16", "12345678").contains("lacking"));
}

TEST_F(Info, IsReadableWithoutJson) {
  const auto text = braid({"info", "-v", "-m", BRAID_SOURCE_DIR "/models/demo"}).out;
  EXPECT_THAT(text, HasMatch("version +" BRAID_VERSION "\n"));
  EXPECT_THAT(text, HasMatch("memory_bytes  .* GB\n"));
  EXPECT_THAT(text, HasMatch("parameters  [0-9],[0-9]{3},[0-9]{3}\n"));
}

// What people look for first.
TEST_F(Info, SumsUpAModel) {
  const auto text = braid({"info", "-m", BRAID_SOURCE_DIR "/models/demo"}).out;
  EXPECT_THAT(text, testing::StartsWith("FLUX.1, "));
  for (const auto* const part : {"text_encoder ", "text_encoder_2", "transformer", "vae"})
    EXPECT_THAT(
        text, HasMatch(std::string("  ") + part + " +[0-9,]+ parameters +[0-9.]+ MB  bfloat16\n"));
  EXPECT_THAT(text, HasMatch("together +8,602,355 parameters +17.2 MB\n"));
  EXPECT_THAT(text, HasSubstr("128x128, 20 steps, guidance 3.5\n"));
  EXPECT_THAT(text, HasMatch("it takes [0-9]+ MB of the .* that cpu has free\n"));
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 12);
}

// A terminal would follow them: an archive may hold a folder of any name.
TEST_F(Info, ShowsNoControlCharactersOfNames) {
  const std::string model = "m\x1b[31m", shown = "m [31m";
  std::filesystem::copy(BRAID_SOURCE_DIR "/models/demo", folder_ / model,
                        std::filesystem::copy_options::recursive);
  for (const std::string command : {"info", "plan", "bench"}) {
    std::vector<std::string> arguments = {command, "-m", model, "--components", "b\x1b[31m\nc"};
    if (command == "bench") arguments.insert(arguments.end(), {"--size", "64x64", "--runs", "1"});
    const auto finished = braid(arguments);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_THAT(finished.err, HasSubstr("--components b [31m c is not read")) << command;
    EXPECT_THAT(finished.err + finished.out, testing::Not(HasSubstr("\x1b"))) << command;
  }
  EXPECT_THAT(braid({"info", "-m", model}).out, testing::StartsWith("FLUX.1, " + shown + "\n"));
}

TEST_F(Info, TellsItsVersion) {
  const auto finished =
      Subprocess({.arguments = {"--version"}, .folder = folder_, .from_shell = true}).finish();
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.out, "braid " BRAID_VERSION "\n");
  EXPECT_EQ(braid({"-V"}).out, finished.out);
}

TEST_F(Info, HelpGoesToStandardOutputAndFitsAScreen) {
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{"--help"},
                                             {"-h"},
                                             {"generate", "-h"},
                                             {"info", "-h"},
                                             {"plan", "-h"},
                                             {"bench", "-h"},
                                             {"verify", "-h"},
                                             {"convert", "-h"},
                                             {"serve", "-h"},
                                             {"generate", "--steps", "0", "--help"}}) {
    const auto finished = braid(arguments);
    EXPECT_EQ(finished.exit_code, 0);
    EXPECT_EQ(finished.err, "");
    EXPECT_THAT(finished.out, HasSubstr("Usage: braid"));
    EXPECT_THAT(finished.out, testing::Not(HasMatch("[^\n]{96}")));
  }
}

TEST_F(Info, HelpIsACommand) {
  EXPECT_EQ(braid({"help"}).out, braid({"--help"}).out);
  EXPECT_EQ(braid({"help", "generate"}).out, braid({"generate", "--help"}).out);
  EXPECT_EQ(braid({"help", "serve"}).exit_code, 0);
  expect_bad_input({"help", "paint"}, "unknown command 'paint': the commands are generate,");
  expect_bad_input({"paint"}, "braid help COMMAND tells more");
}

// Frozen: other people's scripts use these names.
TEST_F(Info, TheFlagsAreThese) {
  EXPECT_THAT(
      flags_of("generate"),
      ElementsAre(
          "-h,--help", "--prompt-file", "--prompt-2", "--boxes", "--negative-prompt",
          "--negative-prompt-2", "--true-cfg", "--guidance-rescale", "--cfg-norm-cap",
          "--cfg-normalize", "--cfg-until", "--max-sequence-length", "--enhancer",
          "--enhancer-model", "--enhancer-system", "--enhancer-key-file", "--enhancer-deadline",
          "--size", "--frames", "--layers", "--steps", "--sampler", "--schedule", "--sigmas",
          "--base-sigmas", "--shift", "--guidance", "--seed", "-n,--num-images", "--batch-size",
          "--init", "--strength", "--mask", "--mask-blur", "--padding-crop", "--reference",
          "--reference-cache", "--resolution", "--control", "--control-scale", "--control-from",
          "--control-to", "--control-mode", "--max-pixels", "-o,--output", "--overwrite",
          "--format", "--quality", "--latents", "--dump", "-m,--model", "--components", "--comfy",
          "--text-encoder-file", "--vae-file", "--controlnet", "--redux", "--lora", "--lora-mode",
          "--dtype", "--device", "--devices", "--threads", "--graph", "--text-stream",
          "--vae-tiling", "--tp", "--ring", "--ulysses", "--cfg-parallel", "--dp",
          "--pp,--layer-split", "--shares", "--tp-modulation", "--ring-form", "--collectives",
          "--deadline", "--text-encoder", "--vae", "--layout", "--preset", "--quantize",
          "--quantize-text", "--quantize-skip", "--offload", "--offload-text", "--offload-vae",
          "--offload-group", "--prefetch", "--resident", "--residency", "--pin", "--check-order",
          "--offload-dir", "--disk-reads", "--memory", "--host-memory", "--cache", "--cache-limit",
          "--cache-polynomial", "--json", "-q,--quiet", "-v,--verbose"));
  EXPECT_THAT(
      flags_of("serve"),
      ElementsAre("-h,--help", "--host", "--unix-socket", "--port", "--api-key-file", "--no-key",
                  "--allow-host", "--allow-origin", "--frame-ancestors", "--base-path",
                  "--keep-alive", "--unknown-fields", "--queue", "--max-pixels", "--max-body",
                  "--max-input-pixels", "--max-steps", "--condition-cache", "--drain", "-m,--model",
                  "--served-model-name", "--components", "--comfy", "--text-encoder-file",
                  "--vae-file", "--lora", "--lora-mode", "--controlnet", "--redux", "--lora-dir",
                  "--enhancer", "--enhancer-model", "--enhancer-system", "--enhancer-key-file",
                  "--enhancer-deadline", "--dtype", "--device", "--devices", "--threads", "--graph",
                  "--text-stream", "--vae-tiling", "--tp", "--ring", "--ulysses", "--cfg-parallel",
                  "--dp", "--pp,--layer-split", "--shares", "--tp-modulation", "--ring-form",
                  "--collectives", "--deadline", "--text-encoder", "--vae", "--preset",
                  "--quantize", "--quantize-text", "--quantize-skip", "--offload", "--offload-text",
                  "--offload-vae", "--offload-group", "--prefetch", "--resident", "--residency",
                  "--pin", "--check-order", "--offload-dir", "--disk-reads", "--memory",
                  "--host-memory", "--cache", "--cache-limit", "--cache-polynomial",
                  "--log-prompts", "-q,--quiet"));
  EXPECT_THAT(flags_of("convert"),
              ElementsAre("-h,--help", "-m,--model", "--components", "--lora", "-o,--output",
                          "--single-file", "--used-layers", "--dtype", "--quantize",
                          "--quantize-text", "--quantize-skip", "-q,--quiet"));
  EXPECT_THAT(flags_of("info"), ElementsAre("-h,--help", "-m,--model", "--components", "--comfy",
                                            "--text-encoder-file", "--vae-file", "--presets",
                                            "--json", "-v,--verbose"));
  EXPECT_THAT(
      flags_of("bench"),
      ElementsAre("-h,--help", "--tp", "--ring", "--ulysses", "--cfg-parallel", "--dp",
                  "--pp,--layer-split", "--shares", "--tp-modulation", "--ring-form",
                  "--collectives", "--deadline", "-m,--model", "--components", "--comfy",
                  "--text-encoder-file", "--vae-file", "--controlnet", "--lora", "--lora-mode",
                  "--synthetic", "--blocks", "--double", "--single", "--dtype", "--device",
                  "--devices", "--threads", "--graph", "--text-stream", "--preset", "--quantize",
                  "--quantize-text", "--quantize-skip", "--offload", "--offload-text",
                  "--offload-vae", "--offload-group", "--prefetch", "--resident", "--residency",
                  "--pin", "--check-order", "--offload-dir", "--disk-reads", "--size",
                  "--max-sequence-length", "--layers", "--init", "--mask", "--reference",
                  "--reference-cache", "--runs", "--warm-up", "--sweep", "--against", "--tolerance",
                  "--plot", "--json"));
}

}  // namespace braid::info_test
