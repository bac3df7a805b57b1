// Configurations: absent fields take the reference class's defaults; wrong ones are named.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/causal_lm/config.h"
#include "models/clip/model.h"
#include "models/flux/config.h"
#include "models/flux2/config.h"
#include "models/siglip/model.h"
#include "models/t5/model.h"
#include "models/vae/config.h"
#include "models/zimage/config.h"

namespace braid::config_test {

using testing::HasSubstr;

template <class Config>
std::string refusal(Config (*read)(const JsonObject&), const char* text) {
  try {
    const auto json = parse_json(text, "config.json");
    read(JsonObject(json, "config.json"));
  } catch (const InputError& e) {
    EXPECT_THAT(e.what(), HasSubstr("config.json"));
    return e.what();
  }
  return "accepted";
}

TEST(FluxConfig, HasTheDefaultsOfTheReferenceClass) {
  const auto json = parse_json("{}", "f");
  const auto c = read_flux_config(JsonObject(json, "f"));
  EXPECT_EQ(c.hidden(), 3072);
  EXPECT_EQ(c.mlp_hidden(), 12288);
  EXPECT_EQ(c.num_double, 19);
  EXPECT_EQ(c.num_single, 38);
  EXPECT_FALSE(c.guidance_embeds);
}

TEST(FluxConfig, RefusesWhatItCannotRun) {
  EXPECT_THAT(refusal(read_flux_config, R"({"_class_name":"UNet2DConditionModel"})"),
              HasSubstr("it describes a UNet2DConditionModel"));
  EXPECT_THAT(refusal(read_flux_config, R"({"_class_name":["code","UNet2DConditionModel"]})"),
              HasSubstr("it describes a UNet2DConditionModel"));
  EXPECT_EQ(refusal(read_flux_config, R"({"_class_name":["code","FluxTransformer2DModel"]})"),
            "accepted");
  EXPECT_THAT(refusal(read_flux_config, R"({"patch_size":2})"), HasSubstr("'patch_size'"));
  EXPECT_THAT(refusal(read_flux_config, R"({"attention_head_dim":64})"),
              HasSubstr("should sum to the width of a head, 64, it sums to 128"));
  EXPECT_THAT(refusal(read_flux_config, R"({"attention_head_dim":6,"axes_dims_rope":[1,2,3]})"),
              HasSubstr("even"));
  EXPECT_THAT(refusal(read_flux_config, R"({"attention_head_dim":8,"axes_dims_rope":[4,4]})"),
              HasSubstr("3 axes"));
  EXPECT_THAT(refusal(read_flux_config, R"({"num_attention_heads":0})"), HasSubstr("between 1"));
  EXPECT_THAT(refusal(read_flux_config, R"({"num_layers":"two"})"), HasSubstr("whole number"));
  EXPECT_THAT(refusal(read_flux_config, R"({"guidance_embeds":1})"), HasSubstr("true or false"));
}

TEST(Flux2Config, RefusesWhatItCannotRun) {
  EXPECT_THAT(refusal(read_flux2_config, R"({"_class_name":"FluxTransformer2DModel"})"),
              HasSubstr("it describes a FluxTransformer2DModel"));
  EXPECT_THAT(refusal(read_flux2_config, R"({"axes_dims_rope":[16,56,56]})"), HasSubstr("4 axes"));
  EXPECT_THAT(refusal(read_flux2_config, R"({"attention_head_dim":64})"),
              HasSubstr("should sum to the width of a head, 64, it sums to 128"));
  EXPECT_THAT(refusal(read_flux2_config, R"({"eps":1e-5})"), HasSubstr("'eps' should be 1e-06"));
  EXPECT_THAT(refusal(read_flux2_config, R"({"mlp_ratio":0})"), HasSubstr("'mlp_ratio'"));
  EXPECT_THAT(refusal(read_flux2_config, R"({"rope_theta":0})"), HasSubstr("'rope_theta'"));
  EXPECT_THAT(refusal(read_flux2_config, R"({"timestep_guidance_channels":7})"),
              HasSubstr("should be even, it is 7"));
}

TEST(ZImageConfig, RefusesWhatItCannotRun) {
  EXPECT_THAT(refusal(read_zimage_config, R"({"_class_name":"FluxTransformer2DModel"})"),
              HasSubstr("it describes a FluxTransformer2DModel"));
  EXPECT_THAT(refusal(read_zimage_config, R"({"all_patch_size":[2,4]})"),
              HasSubstr("'all_patch_size' should be [2]"));
  EXPECT_THAT(refusal(read_zimage_config, R"({"siglip_feat_dim":1152})"),
              HasSubstr("'siglip_feat_dim' should be null"));
  EXPECT_THAT(refusal(read_zimage_config, R"({"n_heads":7})"), HasSubstr("should divide 'dim'"));
  EXPECT_THAT(refusal(read_zimage_config, R"({"n_heads":15})"),
              HasSubstr("should sum to the width of a head, 256, it sums to 128"));
  EXPECT_THAT(refusal(read_zimage_config, R"({"axes_dims":[32,47,49]})"), HasSubstr("even"));
  EXPECT_THAT(refusal(read_zimage_config, R"({"axes_lens":[1024]})"), HasSubstr("3 axes"));
  // a text of one run of 32 has positions 1 to 32, its picture 33
  EXPECT_EQ(refusal(read_zimage_config, R"({"axes_lens":[34,1,1]})"), "accepted");
  EXPECT_THAT(refusal(read_zimage_config, R"({"axes_lens":[33,512,512]})"),
              HasSubstr("'axes_lens' should be at least 34 for text, it is 33"));
}

TEST(ClipConfig, RefusesWhatItCannotRun) {
  EXPECT_THAT(refusal(read_clip_config, R"({"hidden_act":"relu"})"), HasSubstr("it is relu"));
  EXPECT_THAT(refusal(read_clip_config, R"({"hidden_size":100,"num_attention_heads":12})"),
              HasSubstr("should divide 'hidden_size'"));
}

// As transformers' CLIPTextModel.from_pretrained reads the config of a whole CLIP, which diffusers
// calls: `text_config` alone counts, or an object with the text model's type.
TEST(ClipConfig, OfAWholeModelIsItsTextConfig) {
  const auto hidden = [](const char* text) {
    const auto json = parse_json(text, "f");
    return read_clip_config(JsonObject(json, "f")).hidden;
  };
  EXPECT_EQ(hidden(R"({"model_type":"clip","hidden_size":24,"text_config":{"hidden_size":32},
    "text_config_dict":{"hidden_size":64}})"),
            32);
  EXPECT_EQ(
      hidden(R"({"model_type":"clip","text_config":{},"text_config_dict":{"hidden_size":64}})"),
      512);
  EXPECT_EQ(hidden(R"({"model_type":"clip","text_config_dict":{"hidden_size":64}})"), 512);
  EXPECT_EQ(hidden(R"({"model_type":"clip","hidden_size":24,
    "text_config_dict":{"model_type":"clip_text_model","hidden_size":64}})"),
            64);
  EXPECT_EQ(hidden(R"({"hidden_size":24,
    "other":{"model_type":"clip_text_model","hidden_size":64}})"),
            24);
}

TEST(T5Config, RefusesWhatItCannotRun) {
  for (const std::string odd : {R"("dense_act_fn":"relu")", R"("is_gated_act":false)",
                                R"("is_gated_act":null)", R"("is_decoder":true)"})
    EXPECT_THAT(
        refusal(read_t5_config, (R"({"feed_forward_proj":"gated-gelu",)" + odd + "}").c_str()),
        HasSubstr("should be"))
        << odd;
  EXPECT_THAT(refusal(read_t5_config, R"({"feed_forward_proj":"relu"})"),
              HasSubstr("should be gated-gelu, it is relu"));
  EXPECT_THAT(refusal(read_t5_config,
                      R"({"feed_forward_proj":"gated-gelu","relative_attention_max_distance":8})"),
              HasSubstr("should exceed"));
}

TEST(CausalLmConfig, HasTheDefaultsOfTheReferenceClasses) {
  const auto read = [](const char* text) {
    const auto json = parse_json(text, "f");
    return read_causal_lm_config(JsonObject(json, "f"));
  };
  const auto qwen = read(R"({"model_type":"qwen3"})");
  EXPECT_EQ(qwen.vocab_size, 151936);
  EXPECT_EQ(qwen.hidden, 4096);
  EXPECT_EQ(qwen.mlp_hidden, 22016);
  EXPECT_EQ(qwen.num_layers, 32);
  EXPECT_EQ(qwen.num_kv_heads, 32);
  EXPECT_EQ(qwen.head_width, 128);
  EXPECT_EQ(qwen.eps, 1e-6);
  EXPECT_EQ(qwen.theta, 10000);
  EXPECT_EQ(qwen.window, 0);
  EXPECT_EQ(qwen.head_norm, HeadNorm::kYes);
  const auto mistral = read(R"({"model_type":"mistral3","text_config":{"hidden_size":5120}})");
  EXPECT_EQ(mistral.vocab_size, 32000);
  EXPECT_EQ(mistral.mlp_hidden, 14336);
  EXPECT_EQ(mistral.num_heads, 32);
  EXPECT_EQ(mistral.num_kv_heads, 8);
  EXPECT_EQ(mistral.head_width, 160);
  EXPECT_EQ(mistral.window, 4096);
  EXPECT_EQ(mistral.head_norm, HeadNorm::kNo);
}

TEST(CausalLmConfig, IsReadAsNewerAndOlderFilesHaveIt) {
  const auto read = [](const char* text) {
    const auto json = parse_json(text, "f");
    return read_causal_lm_config(JsonObject(json, "f"));
  };
  const auto newer = read(R"({"model_type":"qwen3","num_key_value_heads":null,
    "rope_parameters":{"rope_type":"default","rope_theta":5e6}})");
  EXPECT_EQ(newer.theta, 5e6);
  EXPECT_EQ(newer.num_kv_heads, 32);
  EXPECT_EQ(read(R"({"model_type":"qwen3","rope_theta":1000000,"rope_scaling":null})").theta, 1e6);
  // transformers takes `rope_scaling`, unless it is empty, in place of all of `rope_parameters`
  EXPECT_EQ(read(R"({"model_type":"qwen3","rope_theta":7,"rope_parameters":{"rope_theta":5},
                     "rope_scaling":{"rope_type":"default"}})")
                .theta,
            7);
  EXPECT_EQ(read(R"({"model_type":"qwen3","rope_theta":7,"rope_parameters":{"rope_theta":5},
                     "rope_scaling":{}})")
                .theta,
            5);
  const auto mistral = read(R"({"model_type":"mistral3","vision_config":{"hidden_size":1},
    "text_config":{"model_type":"mistral","head_dim":128,"hidden_size":5120,
    "sliding_window":null}})");
  EXPECT_EQ(mistral.head_width, 128);
  EXPECT_EQ(mistral.window, 0);
  EXPECT_EQ(read(R"({"model_type":"qwen3","attention_bias":true})").attention_bias,
            AttentionBias::kAll);
  EXPECT_EQ(read(R"({"model_type":"mistral","attention_bias":true})").attention_bias,
            AttentionBias::kNo);
  EXPECT_EQ(read(R"({"model_type":"qwen3","sliding_window":64})").window, 0);
  EXPECT_EQ(read(R"({"model_type":"qwen3","sliding_window":64,"use_sliding_window":true})").window,
            64);
}

TEST(CausalLmConfig, RefusesWhatItCannotRun) {
  const auto refused = [](const std::string& fields) {
    return refusal(read_causal_lm_config, (R"({"model_type":"qwen3",)" + fields + "}").c_str());
  };
  EXPECT_THAT(refusal(read_causal_lm_config, R"({"model_type":"llama"})"),
              HasSubstr("'model_type' should be qwen3 or mistral, it is 'llama'"));
  EXPECT_THAT(refusal(read_causal_lm_config, R"({"text_config":{"model_type":"gemma"}})"),
              HasSubstr("'text_config': 'model_type'"));
  EXPECT_THAT(refused(R"("hidden_act":"gelu")"), HasSubstr("should be silu, it is gelu"));
  EXPECT_THAT(refused(R"("rope_scaling":{"type":"yarn","factor":4.0})"),
              HasSubstr("'rope_scaling': 'rope_type' should be default, it is yarn"));
  EXPECT_THAT(refused(R"("rope_parameters":{"rope_type":"llama3"})"), HasSubstr("it is llama3"));
  EXPECT_THAT(refused(R"("rope_theta":0)"), HasSubstr("'rope_theta' should be positive"));
  EXPECT_THAT(refused(R"("layer_types":["chunked_attention"])"), HasSubstr("chunked_attention"));
  EXPECT_THAT(refused(R"("head_dim":15)"), HasSubstr("'head_dim' should be even"));
  EXPECT_THAT(refused(R"("num_attention_heads":4,"num_key_value_heads":3)"),
              HasSubstr("'num_key_value_heads', 3, should divide"));
}

// A norm with such an eps is NaN on rows of small numbers. 0 is a norm without one.
TEST(TextConfigs, RefuseAnEpsBelowZero) {
  const auto eps = [](auto read, const std::string& key, const std::string& more) {
    EXPECT_EQ(refusal(read, ("{" + more + "\"" + key + "\":0}").c_str()), "accepted");
    EXPECT_THAT(refusal(read, ("{" + more + "\"" + key + "\":-1e-9}").c_str()),
                HasSubstr("'" + key + "' should not be below 0, it is -1e-09"));
  };
  eps(read_clip_config, "layer_norm_eps", "");
  eps(read_siglip_config, "layer_norm_eps", "");
  eps(read_t5_config, "layer_norm_epsilon", R"("feed_forward_proj":"gated-gelu",)");
  eps(read_causal_lm_config, "rms_norm_eps", R"("model_type":"qwen3",)");
}

TEST(VaeConfig, RefusesWhatItCannotRun) {
  EXPECT_THAT(refusal(read_vae_config, R"({"_class_name":"AutoencoderTiny"})"),
              HasSubstr("AutoencoderTiny"));
  EXPECT_THAT(refusal(read_vae_config, R"({"act_fn":"relu"})"), HasSubstr("it is relu"));
  EXPECT_THAT(refusal(read_vae_config, R"({"down_block_types":["AttnDownEncoderBlock2D"]})"),
              HasSubstr("AttnDownEncoderBlock2D"));
  EXPECT_THAT(refusal(read_vae_config, R"({"block_out_channels":[32,64],
                          "up_block_types":["UpDecoderBlock2D"]})"),
              HasSubstr("as many entries as 'block_out_channels', 2, it has 1"));
  EXPECT_THAT(refusal(read_vae_config, R"({"block_out_channels":[48]})"),
              HasSubstr("'norm_num_groups', 32"));
  EXPECT_THAT(refusal(read_vae_config, R"({"block_out_channels":[]})"), HasSubstr("1 to 8 levels"));
  EXPECT_THAT(refusal(read_vae_config, R"({"scaling_factor":0})"), HasSubstr("scaling_factor"));
}

TEST(VaeConfig, OfFlux2HasTheDefaultsOfItsClass) {
  const auto json = parse_json(R"({"_class_name":"AutoencoderKLFlux2"})", "f");
  const auto c = read_vae_config(JsonObject(json, "f"));
  EXPECT_EQ(c.latent_channels, 32);
  EXPECT_EQ(c.widths, (std::vector<std::int64_t>{128, 256, 512, 512}));
  EXPECT_EQ(c.decoder_widths(), c.widths);
  EXPECT_EQ(c.layers_per_block, 2);
  EXPECT_EQ(c.sample_size, 1024);
  EXPECT_TRUE(c.quant_conv);
  EXPECT_EQ(c.batch_norm_eps, 1e-4);
}

TEST(VaeConfig, MayGiveBothSidesOfATile) {
  const auto side = [](const char* text) {
    const auto json = parse_json(text, "f");
    return read_vae_config(JsonObject(json, "f")).sample_size;
  };
  EXPECT_EQ(side(R"({"sample_size":[48,64]})"), 48);
  EXPECT_EQ(side(R"({"_class_name":"AutoencoderKLFlux2","sample_size":[512]})"), 512);
  EXPECT_THAT(refusal(read_vae_config, R"({"sample_size":[]})"), HasSubstr("'sample_size'"));
  EXPECT_THAT(refusal(read_vae_config, R"({"sample_size":[0]})"), HasSubstr("'sample_size'"));
}

TEST(VaeConfig, OfFlux2RefusesWhatItCannotRun) {
  const auto refused = [](const std::string& fields) {
    const auto text = R"({"_class_name":"AutoencoderKLFlux2",)" + fields + "}";
    return refusal(read_vae_config, text.c_str());
  };
  EXPECT_THAT(refused(R"("patch_size":[1,2])"), HasSubstr("'patch_size' should be [2, 2]"));
  EXPECT_THAT(refused(R"("batch_norm_eps":-1)"), HasSubstr("'batch_norm_eps'"));
  EXPECT_THAT(refused(R"("decoder_block_out_channels":[32,32])"),
              HasSubstr("as many levels as 'block_out_channels', 4, it has 2"));
  EXPECT_THAT(refused(R"("decoder_block_out_channels":[32,32,32,33])"),
              HasSubstr("every level of 'decoder_block_out_channels', one is 33"));
}

TEST(VaeConfig, OfAnotherClassIsRefusedWithThoseThatWouldDo) {
  const auto* const text = R"({"_class_name":"AutoencoderTiny"})";
  const std::string wanted = "AutoencoderKL, AutoencoderKLFlux2, AutoencoderKLWan";
  EXPECT_THAT(refusal(read_vae_config, text),
              HasSubstr(wanted + " or AutoencoderKLQwenImage, it describes a AutoencoderTiny"));
  EXPECT_THAT(refusal(read_rgba_vae_config, text),
              HasSubstr(wanted + ", AutoencoderKLQwenImage or AutoencoderKLQwenImage21, it"));
}

TEST(VaeConfig, OfWanRefusesWhatItCannotRun) {
  const auto refused = [](const std::string& fields) {
    const auto text = R"({"_class_name":"AutoencoderKLWan",)" + fields + "}";
    return refusal(read_vae_config, text.c_str());
  };
  const std::string of_two = R"("z_dim":2,"latents_mean":[0,0],"latents_std":)";
  EXPECT_EQ(refused(of_two + "[1,0.001]"), "accepted");
  EXPECT_THAT(refused(of_two + "[1,0]"), HasSubstr("'latents_std' should be above 0, one is 0"));
  EXPECT_THAT(refused(of_two + "[1,-2]"), HasSubstr("one is -2"));
  EXPECT_THAT(refused(of_two + "[1]"), HasSubstr("should have 'z_dim', 2, numbers"));
  EXPECT_THAT(refused(R"("latents_mean":"none")"), HasSubstr("should be a list of numbers"));
  EXPECT_THAT(refused(R"("dim_mult":[2,4])"), HasSubstr("it has 3")) << "by the class's default";
  EXPECT_THAT(refused(R"("dim_mult":[])"), HasSubstr("1 to 8 levels, it has 0"));
  EXPECT_EQ(refused(R"("dim_mult":[2,4],"temperal_downsample":[true])"), "accepted");
  EXPECT_THAT(refused(R"("dim_mult":[2,4],"temperal_downsample":[true,true])"),
              HasSubstr("each of the 2 levels of 'dim_mult' but the last, it has 2"));
  EXPECT_THAT(refused(R"("dim_mult":[1,2,4,4],"scale_factor_spatial":16)"),
              HasSubstr("'scale_factor_spatial'"));
  EXPECT_THAT(refused(R"("patch_size":2)"), HasSubstr("'patch_size' should be null"));
}

TEST(T5Buckets, AreExactNearAndLogarithmicFar) {
  const auto buckets = relative_position_buckets(200, T5Config(), at::kCPU);
  const auto at_distance = [&](std::int64_t d) {  // key - query
    return d >= 0 ? buckets[0][d].item<std::int64_t>() : buckets[-d][0].item<std::int64_t>();
  };
  for (std::int64_t d = 0; d < 8; ++d) EXPECT_EQ(at_distance(-d), d);
  for (std::int64_t d = 1; d < 8; ++d) EXPECT_EQ(at_distance(d), 16 + d);
  // 8 + floor(8 log(d / 8) / log(16))
  EXPECT_EQ(at_distance(-8), 8);
  EXPECT_EQ(at_distance(-11), 8);
  EXPECT_EQ(at_distance(-12), 9);
  EXPECT_EQ(at_distance(-90), 14);
  EXPECT_EQ(at_distance(-91), 15);
  EXPECT_EQ(at_distance(-199), 15);
  EXPECT_EQ(at_distance(199), 31);
}

}  // namespace braid::config_test
