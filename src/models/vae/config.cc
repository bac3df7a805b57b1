#include "models/vae/config.h"

#include "base/error.h"

namespace braid {
namespace {

constexpr std::int64_t kMaxWidth = 1 << 16;

void check_block_types(const JsonObject& json, const char* key, const char* wanted) {
  for (const auto& type : json.strings_or(key, {}))
    require(type == wanted, json.source(), ": '", key, "' should hold only ", wanted, ", it holds ",
            type);
}

void check_widths(const VaeConfig& c, const std::vector<std::int64_t>& widths, const char* key,
                  const std::string& source) {
  require(!widths.empty() && widths.size() <= 8, source, ": '", key,
          "' should have 1 to 8 levels, it has ", widths.size());
  for (const auto width : widths)
    require(width % c.norm_groups == 0, source, ": 'norm_num_groups', ", c.norm_groups,
            ", should divide every level of '", key, "', one is ", width);
}

// What AutoencoderKLFlux2 has and lacks.
void read_flux2_fields(const JsonObject& json, VaeConfig& c) {
  c.latent_channels = json.integer_or("latent_channels", 32, 1, kMaxWidth);
  c.widths = json.integers_or("block_out_channels", {128, 256, 512, 512}, 1, kMaxWidth);
  c.own_decoder_widths = json.integers_or("decoder_block_out_channels", {}, 1, kMaxWidth);
  c.layers_per_block = json.integer_or("layers_per_block", 2, 1, 100);
  c.sample_size = json.integer_or("sample_size", 1024, 1, 1 << 20);
  c.scaling_factor = 1;
  c.shift_factor = 0;
  c.batch_norm_eps = json.number_or("batch_norm_eps", 1e-4);
  const auto patch = json.integers_or("patch_size", {2, 2}, 1, kMaxWidth);
  require(patch == std::vector<std::int64_t>{2, 2}, json.source(),
          ": 'patch_size' should be [2, 2]");
  require(*c.batch_norm_eps >= 0, json.source(), ": 'batch_norm_eps' should not be below 0");
  require(c.decoder_widths().size() == c.widths.size(), json.source(),
          ": 'decoder_block_out_channels' should have as many levels as 'block_out_channels', ",
          c.widths.size(), ", it has ", c.decoder_widths().size());
}

}  // namespace

VaeConfig read_vae_config(const JsonObject& json) {
  const auto class_name = json.string_or("_class_name", "AutoencoderKL");
  const bool is_flux2 = class_name == "AutoencoderKLFlux2";
  require(class_name == "AutoencoderKL" || is_flux2, json.source(),
          " should describe an AutoencoderKL or an AutoencoderKLFlux2, it describes a ",
          class_name);
  VaeConfig c;
  c.image_channels = json.integer_or("in_channels", 3, 3, 3);
  json.integer_or("out_channels", 3, 3, 3);
  c.latent_channels = json.integer_or("latent_channels", 4, 1, kMaxWidth);
  c.widths = json.integers_or("block_out_channels", {64}, 1, kMaxWidth);
  c.layers_per_block = json.integer_or("layers_per_block", 1, 1, 100);
  c.norm_groups = json.integer_or("norm_num_groups", 32, 1, kMaxWidth);
  c.sample_size = json.integer_or("sample_size", 32, 1, 1 << 20);
  c.mid_attention = json.flag_or("mid_block_add_attention", true);
  c.quant_conv = json.flag_or("use_quant_conv", true);
  c.post_quant_conv = json.flag_or("use_post_quant_conv", true);
  c.scaling_factor = json.number_or("scaling_factor", 0.18215);
  c.shift_factor = json.number_or("shift_factor", 0);
  const auto activation = json.string_or("act_fn", "silu");
  require(activation == "silu" || activation == "swish", json.source(),
          ": 'act_fn' should be silu, it is ", activation);
  check_block_types(json, "down_block_types", "DownEncoderBlock2D");
  check_block_types(json, "up_block_types", "UpDecoderBlock2D");
  if (is_flux2) read_flux2_fields(json, c);
  check_widths(c, c.widths, "block_out_channels", json.source());
  check_widths(c, c.decoder_widths(), "decoder_block_out_channels", json.source());
  require(c.scaling_factor != 0, json.source(), ": 'scaling_factor' should not be 0");
  return c;
}

}  // namespace braid
