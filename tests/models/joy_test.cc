// The parts of JoyAI-Image-Edit against diffusers' and transformers' results: its transformer,
// Qwen3-VL, and Wan's autoencoder for single pictures. See tools/parity/make_joy.py.
#include "denoiser_suite.h"
#include "message_of.h"
#include "models/joy/model.h"
#include "models/joy/sharding.h"
#include "models/qwen3_vl/model.h"
#include "models/qwen3_vl/names.h"
#include "models/vae/model.h"
#include "wan_names.h"

namespace braid::joy_test {

const auto kJoy = kParity / "joy";

class JoyParts : public testing::Test {
 protected:
  Checkpoint part(const char* name, const char* stem = "diffusion_pytorch_model") const {
    return Checkpoint::open(kJoy / "model" / name, stem);
  }
  template <class Config>
  Config config(const char* name, Config (*read)(const JsonObject&)) const {
    return config_of(kJoy / "model" / name, read);
  }
  Tensor operator[](const std::string& name) const { return dump_[name]; }

  void expect_equal(const Tensor& got, const std::string& name) const {
    ASSERT_EQ(got.sizes(), dump_[name].sizes()) << name;
    // Or 1.5 times the reference's difference from itself on another processor.
    const auto spread = manifest_["float32_spread"].value(name, 0.0);
    EXPECT_LT(largest_error(got, dump_[name]), std::max(1e-5, 1.5 * spread)) << name;
  }
  // A result may be 1.3 times as far from float32 as the reference's own bfloat16 on another
  // processor.
  void expect_as_exact_as_reference(const Tensor& got, const std::string& name) const {
    EXPECT_EQ(got.scalar_type(), at::kBFloat16) << name;
    const auto own = manifest_["bfloat16_errors"][name].get<double>();
    EXPECT_LE(relative_error(got, dump_[name]), 1.3 * own) << name;
  }

  const c10::InferenceMode no_autograd_;
  const Dump dump_{kJoy / "components.safetensors"};
  const Json manifest_ = read_json(kJoy / "manifest.json");
};

class WanVae : public JoyParts {
 protected:
  Vae load(const Checkpoint& checkpoint, Vae::Parts parts = Vae::Parts::kBoth,
           at::ScalarType dtype = at::kFloat) const {
    return {config("vae", read_vae_config),
            Weights(checkpoint, vae_names(checkpoint), {.dtype = dtype}), parts};
  }
  Tensor decoded(const Vae& vae, const char* latents, Tiles tiles) const {
    const auto x = (*this)[latents].to(vae_dtype_);
    return vae.decode(x, tiles).clamp(-1, 1);
  }
  Tensor moments(const Vae& vae) const {
    const auto made = vae.encode((*this)["vae.pixels"].to(vae_dtype_), Tiles::kNever);
    return at::cat({made.mean, made.logvar}, 1);
  }
  at::ScalarType vae_dtype_ = at::kFloat;
};

TEST_F(WanVae, EqualsTheReference) {
  const auto vae = load(part("vae"));
  expect_equal(decoded(vae, "vae.latents", Tiles::kNever), "vae.decoded");
  expect_equal(moments(vae), "vae.moments");
  const auto tiled = decoded(vae, "vae.wide_latents", Tiles::kWhereLarger);
  expect_equal(tiled.slice(2, 0, {}, 7).slice(3, 0, {}, 7), "vae.decoded_tiled");
  expect_equal(vae.from_encoder((*this)["vae.latents"]), "vae.normed");
  expect_equal(vae.to_decoder((*this)["vae.normed"]), "vae.latents");
}

TEST_F(WanVae, Bfloat16IsAsExactAsTheReferences) {
  vae_dtype_ = at::kBFloat16;
  const auto vae = load(part("vae"), Vae::Parts::kBoth, vae_dtype_);
  expect_as_exact_as_reference(decoded(vae, "vae.latents", Tiles::kNever), "vae.decoded");
  expect_as_exact_as_reference(moments(vae), "vae.moments");
}

// The slices that would meet a video's other frames do not matter.
TEST_F(WanVae, LooksAtTheLastSliceInTimeOnly) {
  auto tensors = tensors_of(part("vae"));
  int without_use = 0;
  for (auto& [name, tensor] : tensors) {
    tensor = tensor.clone();
    const bool is_of_times = name.find("time_conv") != std::string::npos;
    if (is_of_times) tensor.fill_(NAN);
    if (!is_of_times && tensor.dim() == 5 && tensor.size(2) == 3) tensor.narrow(2, 0, 2).fill_(NAN);
    without_use += is_of_times;
  }
  EXPECT_EQ(without_use, 2 * (2 + 2));
  const auto whole = load(part("vae")), cut = load(checkpoint_of(tensors));
  EXPECT_TRUE(at::equal(moments(cut), moments(whole)));
  EXPECT_TRUE(at::equal(decoded(cut, "vae.latents", Tiles::kNever),
                        decoded(whole, "vae.latents", Tiles::kNever)));
}

// Wan 2.1's name of a tensor. Levels of this decoder have two blocks; the layers of all are one
// list.
std::string in_wans_list(std::string name) {
  if (name.find("resnets") != name.npos || name.find("down_blocks") != name.npos)
    rename(name, kWansBlock);
  for (int level = 0; level < 6; ++level) {
    const auto ours = "up_blocks." + std::to_string(level) + ".";
    const auto nth = [&](int i) { return "upsamples." + std::to_string(3 * level + i); };
    rename(name, {{ours + "resnets.0", nth(0)},
                  {ours + "resnets.1", nth(1)},
                  {ours + "upsamplers.0", nth(2)}});
  }
  rename(name, {{"down_blocks", "downsamples"}});
  rename(name, kWansEnds);
  return name;
}

TEST_F(WanVae, MayHaveTheNamesOfItsAuthors) {
  std::map<std::string, Tensor> tensors;
  const auto stored = part("vae");
  for (const auto& [name, tensor] : tensors_of(stored)) tensors[in_wans_list(name)] = tensor;
  ASSERT_TRUE(tensors.contains("decoder.upsamples.2.resample.1.weight"));
  ASSERT_TRUE(tensors.contains("encoder.downsamples.0.residual.0.gamma"));
  const auto file = checkpoint_of(tensors);
  const auto vae = load(file);
  expect_equal(decoded(vae, "vae.latents", Tiles::kNever), "vae.decoded");
  expect_equal(moments(vae), "vae.moments");
  expect_equal(decoded(load(file, Vae::Parts::kDecoder), "vae.latents", Tiles::kNever),
               "vae.decoded");
  expect_equal(moments(load(file, Vae::Parts::kEncoder)), "vae.moments");
}

// As in QwenImageControlNetPipeline, with torch's numbers; rounded at each step, six of the twelve
// differ.
TEST(WanLatents, AreRoundedOnceForNets) {
  const VaeConfig config{.latents_mean = {-0.7571, -0.7089, -0.9113},
                         .latents_std = {2.8184, 1.4541, 2.3275}};
  const auto rounded = [](const std::vector<double>& numbers) {
    return at::tensor(numbers, at::kFloat).view({1, 3, 1, 4}).to(at::kBFloat16);
  };
  const auto latents =
      rounded({0.30078125, 0.11083984375, -0.5703125, 0.01531982421875, -1.703125, -0.62890625,
               3.234375, -0.0869140625, 2.203125, 0.8125, -4.1875, 0.1123046875});
  const auto want = rounded({0.375, 0.30859375, 0.06640625, 0.2734375, -0.68359375, 0.054931640625,
                             2.71875, 0.427734375, 1.3359375, 0.7421875, -1.40625, 0.439453125});
  EXPECT_TRUE(at::equal(scaled_for_nets(config, latents), want));
  EXPECT_EQ((scaled_latents(config, latents) != want).sum().item<int>(), 6);
}

TEST_F(WanVae, HasEitherHalf) {
  const auto decoder = load(part("vae"), Vae::Parts::kDecoder);
  expect_equal(decoded(decoder, "vae.latents", Tiles::kNever), "vae.decoded");
  EXPECT_THROW(moments(decoder), Error);
  expect_equal(moments(load(part("vae"), Vae::Parts::kEncoder)), "vae.moments");
}

TEST_F(WanVae, PublishedHasItsParameters) {
  const auto count = [](Vae::Parts parts) {
    return parameters_of([=](const Weights& w) { (void)Vae(wan_vae_config(), w, parts); });
  };
  // minus the convolutions over time alone: 192 and 384 channels down, 384 and 384 up
  const auto of_times = [](std::int64_t in, std::int64_t out) { return 3 * in * out + out; };
  EXPECT_EQ(count(Vae::Parts::kBoth),
            126'892'531 - of_times(192, 192) - of_times(384, 384) - 2 * of_times(384, 768));
  EXPECT_LT(count(Vae::Parts::kDecoder), 73'295'331);
}

TEST_F(WanVae, OtherKindsAreRefused) {
  auto json = read_json(kJoy / "model/vae/config.json");
  const auto refusal = [&](const char* key, const Json& value) {
    auto changed = json;
    changed[key] = value;
    return message_of([&] { (void)read_vae_config(JsonObject(changed, "vae")); });
  };
  using testing::HasSubstr;
  EXPECT_EQ(refusal("dropout", 0.0), "");
  EXPECT_THAT(refusal("is_residual", true), HasSubstr("'is_residual' should be false"));
  EXPECT_THAT(refusal("patch_size", 2), HasSubstr("'patch_size' should be null"));
  EXPECT_THAT(refusal("attn_scales", {1.0}), HasSubstr("'attn_scales' should be empty"));
  EXPECT_THAT(refusal("scale_factor_spatial", 8), HasSubstr("scale_factor_spatial"));
  EXPECT_THAT(refusal("latents_std", {1.0, 2.0}), HasSubstr("16, numbers, they have 16 and 2"));
  EXPECT_THAT(refusal("latents_mean", "zero"), HasSubstr("a list of numbers"));
}

class Qwen3VlParity : public JoyParts {
 protected:
  Qwen3Vl load(at::ScalarType dtype) const {
    const auto checkpoint = part("text_encoder", "model");
    return {config("text_encoder", read_qwen3_vl_config),
            Weights(checkpoint, qwen3_vl_names(checkpoint), {.dtype = dtype})};
  }
  std::vector<std::int64_t> ids(const char* name) const {
    const auto x = (*this)[name].flatten().contiguous();
    return {x.const_data_ptr<std::int64_t>(), x.const_data_ptr<std::int64_t>() + x.numel()};
  }
  // Normalised with means and deviations of one half.
  std::vector<Tensor> pictures(at::ScalarType dtype) const {
    std::vector<Tensor> made;
    for (const auto* name : {"vision.picture0", "vision.picture1"})
      made.push_back(
          ((*this)[name].permute({2, 0, 1}).to(at::kFloat) / 127.5 - 1).contiguous().to(dtype));
    return made;
  }
};

TEST_F(Qwen3VlParity, SeesWhatTheReferenceSees) {
  const auto checkpoint = part("text_encoder", "model");
  const auto c = config("text_encoder", read_qwen3_vl_config);
  const Weights w(checkpoint, qwen3_vl_names(checkpoint), {.dtype = at::kFloat});
  const VisionTower tower(w / "visual", c.vision);
  std::vector<Tensor> tokens;
  std::vector<std::vector<Tensor>> added(3);
  for (const auto& picture : pictures(at::kFloat)) {
    const auto seen = tower(picture);
    tokens.push_back(seen.tokens_MC);
    for (std::size_t i = 0; i < 3; ++i) added[i].push_back(seen.added_MC[i]);
  }
  expect_equal(at::cat(tokens), "vision.tokens");
  for (std::size_t i = 0; i < 3; ++i)
    expect_equal(at::cat(added[i]), "vision.added" + std::to_string(i));
}

// The expected numbers are those of transformers' Qwen3VLVisionModel with this config.
TEST_F(Qwen3VlParity, TurnsPatchesByTheThetaOfTheConfig) {
  const auto checkpoint = part("text_encoder", "model");
  auto json = read_json(kJoy / "model/text_encoder/config.json");
  json["vision_config"]["rope_parameters"] = {{"rope_type", "axial"}, {"rope_theta", 500}};
  const auto c = read_qwen3_vl_config(JsonObject(json, "f"));
  const VisionTower tower(Weights(checkpoint, qwen3_vl_names(checkpoint), {}) / "visual", c.vision);
  const auto seen = tower(at::linspace(-1, 1, 3 * 64 * 96).view({3, 64, 96})).tokens_MC;
  const auto expected = at::tensor({-0.971931f, -0.917796f, 0.659902f, 1.130503f, -0.583512f});
  EXPECT_LT(largest_error(seen.flatten(0, -2)[-1].narrow(0, 0, 5), expected), 1e-5);
}

TEST_F(Qwen3VlParity, ReadsTextWithPicturesAndWithout) {
  const auto model = load(at::kFloat);
  expect_equal(model(ids("text.ids"), model.encode(pictures(at::kFloat))), "text.states");
  expect_equal(model(ids("text.plain_ids"), {}), "text.plain_states");
}

// The model of as many layers as the tower passes features on.
TEST_F(Qwen3VlParity, LastLayerMayBePlain) {
  auto tensors = tensors_of(part("text_encoder", "model"));
  std::erase_if(tensors, [](const auto& named) {
    return named.first.find("language_model.layers.3.") != std::string::npos;
  });
  const auto checkpoint = checkpoint_of(tensors);
  auto c = config("text_encoder", read_qwen3_vl_config);
  c.text.num_layers = std::int64_t(c.vision.deepstack.size());
  const Qwen3Vl whole(c, Weights(checkpoint, qwen3_vl_names(checkpoint), {}));
  c.last_layer_is_plain = true;
  const Qwen3Vl plain(c, Weights(checkpoint, qwen3_vl_names(checkpoint), {}));
  const auto seen = whole.encode(pictures(at::kFloat));
  const auto added = whole(ids("text.ids"), seen) - plain(ids("text.ids"), seen);
  const auto rows = added.abs().sum(-1).flatten().nonzero().flatten();
  EXPECT_TRUE(
      at::allclose(added.index_select(1, rows).squeeze(0), seen.all.added_MC.back(), 0, 1e-5));
}

TEST_F(Qwen3VlParity, Bfloat16IsAsExactAsTheReferences) {
  const auto model = load(at::kBFloat16);
  expect_as_exact_as_reference(model(ids("text.ids"), model.encode(pictures(at::kBFloat16))),
                               "text.states");
  expect_as_exact_as_reference(model(ids("text.plain_ids"), {}), "text.plain_states");
}

TEST_F(Qwen3VlParity, NeedsAPlaceForEachPicture) {
  const auto model = load(at::kFloat);
  const auto refusal = [&](const char* name, std::size_t count) -> std::string {
    auto some = pictures(at::kFloat);
    some.resize(count);
    try {
      (void)model(ids(name), model.encode(some));
    } catch (const InputError& e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal("text.ids", 1),
            "with its chat the prompt marks the places of 2 pictures, there is 1");
  EXPECT_EQ(refusal("text.plain_ids", 2),
            "with its chat the prompt marks the places of 0 pictures, there are 2");
}

// Counted with transformers' classes: the layers, the token table and the tower.
TEST_F(Qwen3VlParity, PublishedHasItsParameters) {
  const Qwen3VlConfig c;
  const std::int64_t layer = 4096 * 128 * (2 * 32 + 2 * 8) + 3 * 4096 * 12288 + 2 * 4096 + 2 * 128;
  EXPECT_EQ(parameters_of([&](const Weights& w) { (void)Qwen3Vl(c, w); }),
            36 * layer + 151936 * 4096 + 576'388'336);
}

class JoyParity : public JoyParts {
 protected:
  Joy load(JoyTextRope rope, at::ScalarType dtype) const {
    auto c = config("transformer", read_joy_config);
    c.text_rope = rope;
    return {c, Weights(part("transformer"), {}, {.dtype = dtype})};
  }
  DenoiserInput input(std::int64_t count, JoyTextRope rope, at::ScalarType dtype) const {
    auto in = joy_input(dump_, count, dtype);
    // after the largest position, of 2 rows, 3 columns and the items
    const auto tokens = in.text.ids_LA.size(0);
    if (rope == JoyTextRope::kBehindPictures)
      in.text.ids_LA += (at::arange(tokens) + std::max<std::int64_t>(3, count)).unsqueeze(1);
    return in;
  }
  Tensor run(std::int64_t count, JoyTextRope rope, at::ScalarType dtype) const {
    return joy_latents(velocity_of(load(rope, dtype), input(count, rope, dtype)), {2, 16, 4, 6});
  }
};

TEST_F(JoyParity, EqualsTheReference) {
  expect_equal(run(1, JoyTextRope::kNone, at::kFloat), "transformer.rope1");
  expect_equal(run(3, JoyTextRope::kNone, at::kFloat), "transformer.rope3");
  expect_equal(run(1, JoyTextRope::kBehindPictures, at::kFloat), "transformer.mrope1");
  expect_equal(run(3, JoyTextRope::kBehindPictures, at::kFloat), "transformer.mrope3");
}

// Frequencies and angles are float32 products in JoyImage's get_rotary_pos_embed; its numbers. Of
// float64 products the first cosine would be 0.387880653.
TEST(JoyRope, HasAnglesOfFloat32Products) {
  const auto rope =
      rope_table(at::tensor({0.F, 119.F, 101.F}).view({1, 3}), JoyConfig{}.rope_axes());
  EXPECT_NEAR(rope.cos[0][74].item<double>(), 0.387887686, 1e-6);
  EXPECT_NEAR(rope.sin[0][74].item<double>(), 0.921706676, 1e-6);
}

TEST_F(JoyParity, Bfloat16IsAsExactAsTheReferences) {
  for (const auto& [count, name] : {std::pair{1, "transformer.rope1"}, {3, "transformer.rope3"}})
    expect_as_exact_as_reference(run(count, JoyTextRope::kNone, at::kBFloat16), name);
}

TEST_F(JoyParity, PartsThatFollowEachOtherAreTheWhole) {
  const auto c = config("transformer", read_joy_config);
  const auto load = [&](std::optional<BlockRange> run) {
    return Joy(c, Weights(part("transformer"), {}, {.dtype = at::kFloat}), ops::attention, run);
  };
  ASSERT_EQ(joy_shape(c).num_blocks(), 2);
  expect_parts_equal_whole(load, joy_shape(c), input(3, JoyTextRope::kNone, at::kFloat));
}

TEST_F(JoyParity, PublishedHasItsParameters) {
  EXPECT_EQ(parameters_of([](const Weights& w) { (void)Joy({}, w); }), 16'263'675'968);
}

}  // namespace braid::joy_test
