// What transformers 5.23 and diffusers 0.42.1 take for a configuration without any field.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "dumps.h"
#include "message_of.h"
#include "models/causal_lm/config.h"
#include "models/clip/model.h"
#include "models/flux2/config.h"
#include "models/krea2/config.h"
#include "models/qwen21/config.h"
#include "models/qwen_image/config.h"
#include "models/siglip/model.h"
#include "models/t5/model.h"
#include "models/vae/config.h"
#include "models/zimage/config.h"

namespace braid::config_defaults_test {

using testing::HasSubstr;

TEST(ConfigDefaults, OfClip) {
  const auto c = config_of_text(read_clip_config);
  EXPECT_EQ(c.vocab_size, 49408);
  EXPECT_EQ(c.max_positions, 77);
  EXPECT_EQ(c.hidden, 512);
  EXPECT_EQ(c.mlp_hidden, 2048);
  EXPECT_EQ(c.num_layers, 12);
  EXPECT_EQ(c.num_heads, 8);
  EXPECT_EQ(c.eps, 1e-5);
  EXPECT_EQ(c.eos_token, 49407);
  EXPECT_EQ(c.activation, Activation::kQuickGelu);
}

TEST(ConfigDefaults, OfClipsOtherActivations) {
  const auto activation = [](const char* json) {
    return config_of_text(read_clip_config, json).activation;
  };
  EXPECT_EQ(activation(R"({"hidden_act": "gelu"})"), Activation::kGelu);
  EXPECT_EQ(activation(R"({"hidden_act": "gelu_new"})"), Activation::kGeluTanh);
  EXPECT_EQ(activation(R"({"hidden_act": "gelu_pytorch_tanh"})"), Activation::kGeluTanh);
}

// Its own default activation, ReLU, is another network.
TEST(ConfigDefaults, OfT5) {
  const auto c = config_of_text(read_t5_config, R"({"feed_forward_proj": "gated-gelu"})");
  EXPECT_EQ(c.vocab_size, 32128);
  EXPECT_EQ(c.hidden, 512);
  EXPECT_EQ(c.mlp_hidden, 2048);
  EXPECT_EQ(c.num_layers, 6);
  EXPECT_EQ(c.num_heads, 8);
  EXPECT_EQ(c.head_width, 64);
  EXPECT_EQ(c.num_buckets, 32);
  EXPECT_EQ(c.max_distance, 128);
  EXPECT_EQ(c.eps, 1e-6);
}

TEST(ConfigDefaults, OfQwenImage) {
  const auto c = config_of_text(read_qwen_image_config);
  EXPECT_EQ(c.in_channels, 64);
  EXPECT_EQ(c.out_channels, 4 * 16);
  EXPECT_EQ(c.num_layers, 60);
  EXPECT_EQ(c.num_heads, 24);
  EXPECT_EQ(c.head_width, 128);
  EXPECT_EQ(c.text_width, 3584);
  EXPECT_EQ(c.axes, (std::vector<std::int64_t>{16, 56, 56}));
  EXPECT_EQ(c.draws, QwenImageDraws::kPicture);
  EXPECT_EQ(c.reference_time, ReferenceTime::kOfStep);
  const auto null = config_of_text(read_qwen_image_config, R"({"out_channels": null})");
  EXPECT_EQ(null.out_channels, 4 * 64);
}

TEST(ConfigDefaults, OfQwen21) {
  const auto c = config_of_text(read_qwen21_config);
  EXPECT_EQ(c.token_width, 64);
  EXPECT_EQ(c.num_layers, 32);
  EXPECT_EQ(c.num_heads, 32);
  EXPECT_EQ(c.hidden, 32 * 128);
  EXPECT_EQ(c.mlp_hidden, 3 * 32 * 128);
  EXPECT_EQ(c.text_width, 4096);
  EXPECT_EQ(c.axes, (std::vector<std::int64_t>{16, 56, 56}));
  EXPECT_EQ(c.norm_eps, 1e-6);
  EXPECT_TRUE(c.causal_condition);
  const auto null = config_of_text(read_qwen21_config, R"({"causal_condition": null})");
  EXPECT_FALSE(null.causal_condition);
}

// A null is None, which clears a flag that is set unless a config says otherwise.
TEST(ConfigDefaults, OfFlagsThatAreNull) {
  const auto vae = [](const std::string& value) {
    return config_of_text(read_vae_config, "{\"mid_block_add_attention\": " + value +
                                               ", \"use_quant_conv\": " + value +
                                               ", \"use_post_quant_conv\": " + value + "}");
  };
  EXPECT_FALSE(vae("null").mid_attention);
  EXPECT_FALSE(vae("null").quant_conv);
  EXPECT_FALSE(vae("null").post_quant_conv);
  const auto usual = config_of_text(read_vae_config);
  EXPECT_TRUE(usual.mid_attention && usual.quant_conv && usual.post_quant_conv);
  EXPECT_TRUE(config_of_text(read_zimage_config).qk_norm);
  EXPECT_FALSE(config_of_text(read_zimage_config, R"({"qk_norm": null})").qk_norm);
  EXPECT_TRUE(config_of_text(read_flux2_config).guidance_embeds);
  EXPECT_FALSE(config_of_text(read_flux2_config, R"({"guidance_embeds": null})").guidance_embeds);
  const auto residual = R"({"_class_name": "AutoencoderKLQwenImage21", "is_residual": null})";
  EXPECT_THAT(message_of([&] { config_of_text(read_rgba_vae_config, residual); }),
              HasSubstr("'is_residual' should be true"));
}

// Without a number of key heads there are as many as of queries.
TEST(ConfigDefaults, OfKrea2sKeyHeads) {
  const auto usual = config_of_text(read_krea2_config);
  EXPECT_EQ(usual.image.num_kv_heads, 12);
  EXPECT_EQ(usual.text.num_kv_heads, 20);
  const auto null =
      config_of_text(read_krea2_config, R"({"num_attention_heads": 6, "num_key_value_heads": null,
                             "text_num_attention_heads": 10, "text_num_key_value_heads": null})");
  EXPECT_EQ(null.image.num_kv_heads, 6);
  EXPECT_EQ(null.text.num_kv_heads, 10);
}

TEST(ConfigDefaults, OfSiglip) {
  const auto c = config_of_text(read_siglip_config);
  EXPECT_EQ(c.hidden, 768);
  EXPECT_EQ(c.mlp_hidden, 3072);
  EXPECT_EQ(c.num_layers, 12);
  EXPECT_EQ(c.num_heads, 12);
  EXPECT_EQ(c.num_patches(), 14 * 14);
  EXPECT_EQ(c.eps, 1e-6);
}

// Qwen3 has a window only where it is told to use it; Mistral unless it is told to have none.
TEST(ConfigDefaults, OfWindows) {
  const auto window = [](const char* json) {
    return config_of_text(read_causal_lm_config, json).window;
  };
  EXPECT_EQ(window(R"({"model_type": "mistral"})"), 4096);
  EXPECT_EQ(window(R"({"model_type": "mistral", "sliding_window": null})"), 0);
  EXPECT_EQ(window(R"({"model_type": "mistral", "sliding_window": 512})"), 512);
  EXPECT_EQ(window(R"({"model_type": "qwen3"})"), 0);
  EXPECT_EQ(window(R"({"model_type": "qwen3", "sliding_window": 512})"), 0);
  EXPECT_EQ(window(R"({"model_type": "qwen3", "use_sliding_window": true})"), 4096);
}

// As transformers fills in `layer_types`. Qwen3-VL's class knows no windows.
TEST(ConfigDefaults, OfWindowsThatNoLayerHas) {
  const auto window = [](const std::string& fields) {
    const auto text =
        R"({"model_type": "qwen3", "use_sliding_window": true, "sliding_window": 8, )" + fields +
        "}";
    return config_of_text(read_causal_lm_config, text.c_str()).window;
  };
  EXPECT_EQ(window(R"("num_hidden_layers": 28)"), 0);
  EXPECT_EQ(window(R"("num_hidden_layers": 29)"), 8);
  EXPECT_EQ(window(R"("num_hidden_layers": 4, "max_window_layers": 4)"), 0);
  EXPECT_EQ(window(R"("num_hidden_layers": 4, "max_window_layers": 3)"), 8);
  EXPECT_EQ(window(R"("num_hidden_layers": 2, "max_window_layers": 0,
                      "layer_types": ["full_attention", "full_attention"])"),
            0);
  EXPECT_EQ(window(R"("num_hidden_layers": 2, "max_window_layers": 9,
                      "layer_types": ["full_attention", "sliding_attention"])"),
            8);
  EXPECT_EQ(window(R"("num_hidden_layers": 2, "layer_types": null)"), 0);
  const char* const vl = R"({"use_sliding_window": true, "max_window_layers": 0})";
  EXPECT_EQ(config_of_text(read_qwen3_vl_text_config, vl).window, 0);
  EXPECT_EQ(config_of_text(read_qwen25_vl_text_config, vl).window, 4096);
}

TEST(ConfigDefaults, AreOfOneActivationUnderBothItsNames) {
  for (const char* const name : {"silu", "swish"}) {
    const auto fields = text_of("\"hidden_act\": \"", name, "\"}");
    EXPECT_NO_THROW(
        config_of_text(read_causal_lm_config, ("{\"model_type\": \"qwen3\", " + fields).c_str()));
    EXPECT_NO_THROW(config_of_text(read_qwen25_vl_text_config, ("{" + fields).c_str()));
  }
}

TEST(ConfigDefaults, OfAutoencoderKl) {
  const auto c = config_of_text(read_vae_config);
  EXPECT_EQ(c.image_channels, 3);
  EXPECT_EQ(c.latent_channels, 4);
  EXPECT_EQ(c.widths, std::vector<std::int64_t>{64});
  EXPECT_EQ(c.layers_per_block, 1);
  EXPECT_EQ(c.norm_groups, 32);
  EXPECT_EQ(c.sample_size, 32);
  EXPECT_EQ(c.scaling_factor, 0.18215);
  EXPECT_EQ(c.shift_factor, 0);
  EXPECT_TRUE(c.quant_conv && c.post_quant_conv && c.mid_attention);
  EXPECT_FALSE(
      config_of_text(read_vae_config, R"({"mid_block_add_attention": false})").mid_attention);
}

// base_dim 96 and dim_mult [1, 2, 4, 4]; a decoder_base_dim makes the decoder wider.
TEST(ConfigDefaults, OfAutoencoderKlWan) {
  const auto c = config_of_text(read_vae_config, R"({"_class_name": "AutoencoderKLWan"})");
  EXPECT_EQ(c.widths, (std::vector<std::int64_t>{96, 192, 384, 384}));
  EXPECT_EQ(c.decoder_widths(), c.widths);
  EXPECT_EQ(c.latent_channels, 16);
  EXPECT_EQ(c.layers_per_block, 2);
  const auto wide =
      config_of_text(read_vae_config, R"({"_class_name": "AutoencoderKLWan", "base_dim": 32,
                           "decoder_base_dim": 64, "dim_mult": [1, 2, 3, 4]})");
  EXPECT_EQ(wide.widths, (std::vector<std::int64_t>{32, 64, 96, 128}));
  EXPECT_EQ(wide.decoder_widths(), (std::vector<std::int64_t>{64, 128, 192, 256}));
}

}  // namespace braid::config_defaults_test
