// LoRAs on the command line: what the picture records, what `info` prints, and bad files.
#include <cstring>

#include "base/file.h"
#include "workplace.h"

namespace braid::lora_test {

using Json = nlohmann::json;
using testing::HasSubstr;

class Lora : public Workplace {
 protected:
  // A file of float32 zeros, or of `value`.
  struct Made {
    std::string name;
    std::vector<std::int64_t> shape;
    float value = 0;
  };
  std::string lora(const std::vector<Made>& tensors) const {
    Json header = Json::object();
    std::string data;
    for (const auto& [name, shape, value] : tensors) {
      std::int64_t count = 1;
      for (const auto extent : shape) count *= extent;
      const auto begin = data.size();
      for (std::int64_t i = 0; i < count; ++i) {
        char bytes[4];
        std::memcpy(bytes, &value, 4);
        data.append(bytes, 4);
      }
      header[name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {begin, data.size()}}};
    }
    const auto text = header.dump();
    std::string length(8, '\0');
    for (int i = 0; i < 8; ++i) length[std::size_t(i)] = char(text.size() >> (8 * i));
    return write("lora.safetensors", length + text + data).filename().string();
  }
  static std::vector<Made> pair(const std::string& module, std::int64_t rows, std::int64_t columns,
                                float value = 0) {
    return {{module + ".lora_A.weight", {2, columns}, 0},
            {module + ".lora_B.weight", {rows, 2}, value}};
  }
  void expect_refused(const std::string& file, const std::string& words) const {
    expect_bad_input({"generate", "a", "--lora", file, "--size", "32x32", "--steps", "1"}, words);
  }
};

TEST_F(Lora, IsNamedInThePicturesText) {
  const auto file = lora(pair("diffusion_model.img_in", 192, 64));
  const auto drawn = draw({"a", "--lora", file + "=-0.5", "--json"});
  ASSERT_EQ(drawn.exit_code, 0) << drawn.err;
  EXPECT_EQ(Json::parse(drawn.out)["lora"],
            Json::parse(R"([{"file": "lora.safetensors", "scale": -0.5}])"));
  const auto info = braid({"info", "--json", "braid.png"});
  EXPECT_EQ(Json::parse(info.out)["lora"], "lora.safetensors=-0.5");
}

TEST_F(Lora, ThatOverflowsIsNotConverted) {
  const auto file = lora({{"transformer.x_embedder.lora_A.weight", {2, 64}, 1},
                          {"transformer.x_embedder.lora_B.weight", {192, 2}, 1}});
  const auto demo = (std::filesystem::path(BRAID_SOURCE_DIR) / "models/demo").string();
  expect_bad_input({"convert", "-m", demo, "--lora", file + "=3e38", "-o", "converted"},
                   "not finite once the adapters are merged");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "converted"));
}

TEST_F(Lora, ThatAddsNothingChangesNothing) {
  const auto file = lora(pair("transformer.x_embedder", 192, 64));
  ASSERT_EQ(draw({"a", "-o", "plain.png"}).exit_code, 0);
  const auto pixels = [&](const std::string& png) {
    const auto bytes = read_file(folder_ / png);
    return bytes.substr(bytes.find("IDAT"));
  };
  for (const auto* const mode : {"fused", "beside"}) {
    ASSERT_EQ(draw({"a", "-o", "with.png", "--lora", file, "--lora-mode", mode}).exit_code, 0);
    EXPECT_EQ(pixels("with.png"), pixels("plain.png")) << mode;
  }
}

TEST_F(Lora, IsDescribed) {
  const auto file = lora(pair("lora_unet_single_blocks_0_linear1", 21504, 3072));
  const auto info = braid({"info", "--json", file});
  ASSERT_EQ(info.exit_code, 0) << info.err;
  const auto json = Json::parse(info.out);
  EXPECT_EQ(json["kinds"], Json::array({"LoRA"}));
  EXPECT_EQ(json["spelling"], "sd-scripts");
  EXPECT_EQ(json["modules_by_rank"], Json::parse(R"({"2": 1})"));
  EXPECT_EQ(json["fits"], std::string("flux1-dev, flux1-schnell, flux1-kontext-dev, ") +
                              "flux1-fill-dev, flux1-canny-dev, flux1-depth-dev");
  EXPECT_EQ(json["parameters"], 2 * (21504 + 3072));
}

// Canny's and Depth's have twice the inputs for latents, too.
TEST_F(Lora, ThatWidensAModelIsDescribedAsItsOwn) {
  auto tensors = pair("img_in", 3072, 128);
  for (auto& made : pair("single_blocks.0.linear1", 21504, 3072))
    tensors.push_back(std::move(made));
  const auto file = lora(tensors);
  const auto info = braid({"info", "--json", file});
  ASSERT_EQ(info.exit_code, 0) << info.err;
  EXPECT_EQ(Json::parse(info.out)["fits"],
            "flux1-dev, flux1-schnell, flux1-canny-dev, flux1-depth-dev");
  expect_bad_input({"generate", "a", "--lora", lora(pair("img_in", 192, 128))},
                   "this model needs a control picture to follow");
}

TEST_F(Lora, IsRefusedInOneSentenceWhereItIsWrong) {
  expect_refused("none.safetensors", "none.safetensors");
  expect_refused(write("text.safetensors", "no safetensors file").string(), "text.safetensors");
  expect_refused(lora({{"img_in.weight", {192, 64}}}), "is not a LoRA");
  expect_refused(lora(pair("diffusion_model.elsewhere", 192, 64)), "changes nothing of this model");
  expect_refused(lora(pair("diffusion_model.img_in", 3072, 64)), "is for a weight of [3072, 64]");
  expect_refused(lora(pair("diffusion_model.img_in", 192, 64, NAN)), "not finite");
  expect_refused(lora({{"img_in.lora_A.weight", {2, 64}}, {"img_in.lora_B.weight", {192, 3}}}),
                 "two factors of one rank");
  expect_refused("x.safetensors=much", "there is no adapter at x.safetensors=much");
  const auto there = lora(pair("diffusion_model.img_in", 192, 64));
  expect_refused(there + "=much", "--lora should be a finite number, it is 'much'");
  expect_bad_input({"convert", "-m", BRAID_SOURCE_DIR "/models/demo", "-o", "out", "--lora",
                    lora(pair("diffusion_model.img_in", 3072, 64))},
                   "is for a weight of [3072, 64]");
}

}  // namespace braid::lora_test
