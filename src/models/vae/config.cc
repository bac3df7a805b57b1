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

}  // namespace

VaeConfig read_vae_config(const JsonObject& json) {
  const auto class_name = json.string_or("_class_name", "AutoencoderKL");
  require(class_name == "AutoencoderKL", json.source(),
          " should describe an AutoencoderKL, it describes a ", class_name);
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
  require(!c.widths.empty() && c.widths.size() <= 8, json.source(),
          ": 'block_out_channels' should have 1 to 8 levels, it has ", c.widths.size());
  for (const auto width : c.widths)
    require(width % c.norm_groups == 0, json.source(), ": 'norm_num_groups', ", c.norm_groups,
            ", should divide every level of 'block_out_channels', one is ", width);
  require(c.scaling_factor != 0, json.source(), ": 'scaling_factor' should not be 0");
  return c;
}

}  // namespace braid
