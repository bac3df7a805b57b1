// Damaged, incomplete or hostile models: one sentence naming the file.
#include "base/file.h"
#include "workplace.h"

namespace braid::bad_model_test {

const char* const kT5 = "text_encoder_2/model.safetensors";
const char* const kFlux = "transformer/diffusion_pytorch_model.safetensors";
const char* const kClipConfig = "text_encoder/config.json";
const char* const kFluxConfig = "transformer/config.json";

using Json = nlohmann::json;

TEST_F(SpoiledModel, WorksBeforeItIsSpoiled) {
  const auto finished =
      braid({"generate", "a", "-m", "model", "--size", "32x32", "--steps", "1", "-q"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out, "braid.png\n");
  EXPECT_EQ(finished.err, "");
}

TEST_F(SpoiledModel, IsNoModelAtAll) {
  expect_bad_input({"generate", "a", "-m", "nowhere"}, "there is no model at nowhere");
  remove("model_index.json");
  expect_refused("it has no model_index.json");
}

// What lies in the current folder under the program's names may be anybody's.
TEST_F(SpoiledModel, AndTheEngineAreNotThoseOfTheCurrentFolderWithoutProc) {
  const std::string without = "unshare -rm /bin/sh -c 'mount -t tmpfs none /proc && ";
  if (std::system((without + "true' 2> /dev/null").c_str()) != 0)
    GTEST_SKIP() << "no mount can be made";
  const auto engine = write("braid-engine", "#!/bin/sh\necho another engine\n");
  std::filesystem::permissions(engine, std::filesystem::perms::owner_all);
  std::filesystem::create_directories(folder_ / "share/braid/models");
  std::filesystem::rename(folder_ / "model", folder_ / "share/braid/models/demo");
  const auto run = [&](const std::string& program) {
    return run_in_shell("exec " + without + "exec \"$0\"" + program + " generate a' \"$0\"", {},
                        folder_);
  };
  const auto launched = run("");
  EXPECT_EQ(launched.exit_code, 1);
  EXPECT_EQ(launched.out, "");
  EXPECT_EQ(launched.err,
            "braid: cannot read /proc/self/exe, which says where braid is: No such file or "
            "directory\n");
  const auto started = run("-engine");
  EXPECT_EQ(started.exit_code, 2);
  EXPECT_THAT(started.err, testing::HasSubstr("is not in /share/braid/models"));
}

TEST_F(SpoiledModel, SingleFilesNeedTheirComponents) {
  std::filesystem::create_directory(folder_ / "alone");
  std::filesystem::copy_file(file(kFlux), folder_ / "alone/flux.safetensors");
  expect_bad_input({"generate", "a", "-m", "alone/flux.safetensors"}, "(--components DIR)");
  expect_bad_input(
      {"generate", "a", "-m", "alone/flux.safetensors", "--components", "Z-Image-Nano"},
      "those that come with Braid");
  expect_bad_input({"generate", "a", "--comfy", "none"}, "there is no ComfyUI models folder");
}

TEST_F(SpoiledModel, DescribesAnotherPipeline) {
  replace("model_index.json", R"({"_class_name": "StableDiffusionPipeline"})");
  expect_refused("should describe a FluxPipeline");
}

TEST_F(SpoiledModel, LacksAPart) {
  std::filesystem::remove_all(file("vae"));
  expect_refused("vae");
}

TEST_F(SpoiledModel, LacksWeights) {
  remove(kT5);
  expect_refused("no weights in model/text_encoder_2");
}

TEST_F(SpoiledModel, HasALinkThatLeadsToItself) {
  for (const std::string name : {"vae/diffusion_pytorch_model.safetensors", "model_index.json",
                                 "tokenizer_2/tokenizer.json"}) {
    const auto target = std::filesystem::read_symlink(file(name));
    remove(name);
    std::filesystem::create_symlink(file(name).filename(), file(name));
    expect_refused("model/" + name + "\": Too many levels of symbolic links");
    remove(name);
    std::filesystem::create_symlink(target, file(name));
  }
}

TEST_F(SpoiledModel, HasANameThatIsTooLong) {
  const std::string name(300, 'x');
  for (const char* const flag : {"-m", "--comfy"})
    expect_bad_input({"generate", "a", flag, name}, "x\": File name too long");
  expect_bad_input({"generate", "a", "-m", file(kFlux), "--components", name},
                   "File name too long");
}

TEST_F(SpoiledModel, LacksAShard) {
  remove(kT5);
  replace("text_encoder_2/config.json", contents("text_encoder_2/config.json"));
  write("model/text_encoder_2/model.safetensors.index.json",
        R"({"weight_map": {"shared.weight": "model-00001-of-00002.safetensors"}})");
  expect_refused("the shard model/text_encoder_2/model-00001-of-00002.safetensors");
}

TEST_F(SpoiledModel, IsSomethingElse) {
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n";
  for (const char* const name : {kT5, "tokenizer_2/tokenizer.json", kFluxConfig}) {
    const auto whole = contents(name);
    replace(name, pointer);
    expect_refused("model/" + std::string(name) + " is a Git LFS pointer");
    replace(name, whole);
  }
  write("page.safetensors", "<!doctype html><html><title>Sign in</title></html>");
  expect_bad_input({"generate", "a", "-m", "page.safetensors"}, "a web page");
  expect_bad_input({"generate", "a", "-m", "model", "--lora", "page.safetensors"}, "a web page");
}

TEST_F(SpoiledModel, IsTruncated) {
  const auto whole = contents(kT5);
  for (const std::size_t size :
       {std::size_t(0), std::size_t(4), std::size_t(100), whole.size() / 2, whole.size() - 1}) {
    replace(kT5, whole.substr(0, size));
    expect_refused("model.safetensors");
  }
}

TEST_F(SpoiledModel, ClaimsAHeaderOfTwoToTheSixty) {
  auto bytes = contents(kT5);
  bytes.replace(0, 8, std::string(7, '\0') + '\x10');
  replace(kT5, bytes);
  expect_refused("its header claims 1152921504606846976 bytes");
}

TEST_F(SpoiledModel, HasAWeightThatIsNoNumber) {
  auto bytes = contents(kFlux);
  const std::string no_number("\0\0\xc0\x7f", 4);  // in any of the dtypes
  replace(kFlux, bytes.replace(bytes.size() - no_number.size(), no_number.size(), no_number));
  const auto finished = braid({"generate", "a", "-m", "model", "--size", "32x32", "--steps", "1"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.err, testing::HasSubstr("picture 0 has values that are not finite numbers"));
}

TEST_F(SpoiledModel, HasATransformerInBlocksThatIsNone) {
  const auto whole = read_file(BRAID_SOURCE_DIR "/tests/data/parity/blocks/flux.gguf");
  const auto refused = [&](const std::string& bytes, const std::string& words) {
    write("flux.gguf", bytes);
    expect_bad_input({"generate", "a", "-m", "flux.gguf", "--components", "model"}, words);
  };
  refused("", "flux.gguf is cut short or wrong");
  refused(whole.substr(0, 100), "claims 60 tensors, more than its 100 bytes can describe");
  refused(whole.substr(0, whole.size() / 2), "it is truncated or wrong");
  refused("GGUF" + std::string(1, 1) + whole.substr(5), "a GGUF file of version 1");
  refused(whole.substr(0, 8) + std::string(7, '\0') + '\x10' + whole.substr(16),
          "claims 1152921504606846976 tensors");
  refused("FUGG" + whole.substr(4), "is not a GGUF file");
}

TEST_F(SpoiledModel, HasOverlappingTensors) {
  edit_header(kT5, [](Json& header) {
    auto& offsets = header["encoder.block.0.layer.0.layer_norm.weight"]["data_offsets"];
    const std::int64_t size = offsets[1].get<std::int64_t>() - offsets[0].get<std::int64_t>();
    offsets = {0, size};
  });
  expect_refused("overlap");
}

TEST_F(SpoiledModel, HasTensorsBeyondItsEnd) {
  edit_header(kT5, [](Json& header) {
    auto& offsets = header["shared.weight"]["data_offsets"];
    const std::int64_t size = offsets[1].get<std::int64_t>() - offsets[0].get<std::int64_t>();
    offsets = {1'000'000'000'000, 1'000'000'000'000 + size};
  });
  expect_refused("tensor 'shared.weight' ends at byte");
}

TEST_F(SpoiledModel, HasAnUnknownOrWrongDtype) {
  edit_header(kT5, [](Json& header) { header["shared.weight"]["dtype"] = "BF17"; });
  expect_refused("'shared.weight' has the unknown dtype 'BF17'");
  edit_header(kT5, [](Json& header) { header["shared.weight"]["dtype"] = "I16"; });
  expect_refused("shared.weight");
}

TEST_F(SpoiledModel, HasAWrongShape) {
  edit_header(kFlux, [](Json& header) {
    auto& shape = header["x_embedder.weight"]["shape"];
    std::swap(shape[0], shape[1]);
  });
  expect_refused("x_embedder.weight");
}

TEST_F(SpoiledModel, HasATensorTooMany) {
  edit_header(kFlux, [](Json& header) {
    header["surplus"] = {{"dtype", "F32"}, {"shape", {0}}, {"data_offsets", {0, 0}}};
  });
  expect_refused("surplus");
}

TEST_F(SpoiledModel, HasATensorTooFew) {
  edit_header(kFlux, [](Json& header) {
    header["renamed"] = header["proj_out.bias"];
    header.erase("proj_out.bias");
  });
  expect_refused("proj_out.bias");
}

TEST_F(SpoiledModel, HasATensorTwice) {
  const auto old = contents(kT5);
  const std::string twice = R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)"
                            R"("a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})";
  replace(kT5, std::string(1, char(twice.size())) + std::string(7, '\0') + twice);
  expect_refused("model.safetensors");
}

TEST_F(SpoiledModel, HasBrokenConfigurations) {
  replace(kClipConfig, "{\"hidden_size\": 128,");
  expect_refused("text_encoder/config.json");
  replace(kClipConfig, "[]");
  expect_refused("text_encoder/config.json");
}

TEST_F(SpoiledModel, HasConfigurationsOutOfRange) {
  edit_json(kClipConfig, [](Json& json) { json["hidden_size"] = -4; });
  expect_refused("hidden_size");
  edit_json(kClipConfig, [](Json& json) { json["hidden_size"] = "many"; });
  expect_refused("hidden_size");
}

TEST_F(SpoiledModel, HasAConfigurationThatItsWeightsDoNotFit) {
  edit_json(kFluxConfig, [](Json& json) { json["num_layers"] = 3; });
  expect_refused("transformer_blocks.2");
  edit_json(kFluxConfig, [](Json& json) { json["num_layers"] = 1; });
  expect_refused("transformer_blocks.1");
}

TEST_F(SpoiledModel, HasNoTokenizer) {
  for (const auto* const name : {"vocab.json", "merges.txt"})
    remove(std::string("tokenizer/") + name);
  expect_refused("tokenizer");
}

TEST_F(SpoiledModel, HasATokenizerThatIsNone) {
  replace("tokenizer/vocab.json", "this is no vocabulary");
  expect_refused("tokenizer/vocab.json");
}

TEST_F(SpoiledModel, HasASentencepieceModelThatIsNone) {
  remove("tokenizer_2/tokenizer.json");
  replace("tokenizer_2/spiece.model", std::string("\x7f\x45LF\0\0\xff\xff", 8));
  expect_refused("tokenizer_2");
}

TEST_F(SpoiledModel, HasABrokenScheduler) {
  edit_json("model_index.json", [](Json& json) {
    json["scheduler"] = {"diffusers", "DDIMScheduler"};
  });
  expect_refused("model_index.json asks for the scheduler DDIMScheduler");
}

TEST_F(SpoiledModel, HasDefaultsOutOfRange) {
  replace("generation_config.json", R"({"num_inference_steps": 0})");
  expect_refused("num_inference_steps");
}

}  // namespace braid::bad_model_test
