#include "models/vae/config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

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

// Pixels of a tile's side; both sides in a list, whose first the reference takes.
std::int64_t read_sample_size(const JsonObject& json, std::int64_t otherwise) {
  constexpr const char* kKey = "sample_size";
  constexpr std::int64_t kMost = 1 << 20;
  if (!json.has(kKey) || !json.at(kKey).is_array())
    return json.integer_or(kKey, otherwise, 1, kMost);
  const auto sides = json.integers_or(kKey, {}, 1, kMost);
  require(!sides.empty(), json.source(), ": '", kKey, "' should hold a side, it is an empty list");
  return sides.front();
}

// Fields that differ in AutoencoderKLFlux2.
void read_flux2_fields(const JsonObject& json, VaeConfig& c) {
  c.latent_channels = json.integer_or("latent_channels", 32, 1, kMaxWidth);
  c.widths = json.integers_or("block_out_channels", {128, 256, 512, 512}, 1, kMaxWidth);
  c.own_decoder_widths = json.integers_or("decoder_block_out_channels", {}, 1, kMaxWidth);
  c.layers_per_block = json.integer_or("layers_per_block", 2, 1, 100);
  c.sample_size = read_sample_size(json, 1024);
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

std::vector<double> numbers_or(const JsonObject& json, const char* key,
                               const std::vector<double>& otherwise) {
  if (!json.has(key)) return otherwise;
  const auto& list = json.at(key);
  const bool are_numbers = list.is_array() && std::all_of(list.begin(), list.end(),
                                                          [](auto& x) { return x.is_number(); });
  require(are_numbers, json.source(), ": '", key, "' should be a list of numbers");
  return list.get<std::vector<double>>();
}

void check_wan_latents(const VaeConfig& c, const std::string& source) {
  const auto channels = std::size_t(c.latent_channels);
  require(c.latents_mean.size() == channels && c.latents_std.size() == channels, source,
          ": 'latents_mean' and 'latents_std' should have 'z_dim', ", channels,
          ", numbers, they have ", c.latents_mean.size(), " and ", c.latents_std.size());
  for (const auto deviation : c.latents_std)
    require(deviation > 0, source, ": 'latents_std' should be above 0, one is ", deviation);
}

// Rejects values that would mean another network.
void check_wan_kind(const JsonObject& json) {
  require(!json.flag_or("is_residual", false), json.source(), ": 'is_residual' should be false");
  require(!json.has("patch_size"), json.source(), ": 'patch_size' should be null");
  require(!json.has("attn_scales") || json.at("attn_scales").empty(), json.source(),
          ": 'attn_scales' should be empty");
}

VaeConfig read_wan_config(const JsonObject& json) {
  check_wan_kind(json);
  auto c = wan_vae_config();
  for (const char* const key : {"in_channels", "out_channels", "input_channels"})
    (void)json.integer_or(key, 3, 3, 3);
  const auto base = json.integer_or("base_dim", c.widths.front(), 1, kMaxWidth);
  const auto decoder_base = json.integer_or("decoder_base_dim", base, 1, kMaxWidth);
  const auto multiples = json.integers_or("dim_mult", {1, 2, 4, 4}, 1, 1024);
  require(!multiples.empty() && multiples.size() <= 8, json.source(),
          ": 'dim_mult' should have 1 to 8 levels, it has ", multiples.size());
  require(multiples.front() == 1, json.source(),
          ": 'dim_mult' should begin with 1, it begins with ", multiples.front());
  c.widths.clear();
  for (const auto multiple : multiples) {
    c.widths.push_back(base * multiple);
    if (decoder_base != base) c.own_decoder_widths.push_back(decoder_base * multiple);
  }
  c.latent_channels = json.integer_or("z_dim", c.latent_channels, 1, kMaxWidth);
  c.layers_per_block = json.integer_or("num_res_blocks", c.layers_per_block, 1, 100);
  c.latents_mean = numbers_or(json, "latents_mean", c.latents_mean);
  c.latents_std = numbers_or(json, "latents_std", c.latents_std);
  check_wan_latents(c, json.source());
  json.integer_or("scale_factor_spatial", c.downscale(), c.downscale(), c.downscale());
  return c;
}

}  // namespace

VaeConfig flux2_vae_config() {
  return {.latent_channels = 32,
          .quant_conv = true,
          .post_quant_conv = true,
          .scaling_factor = 1,
          .shift_factor = 0,
          .batch_norm_eps = 1e-4};
}

VaeConfig wan_vae_config() {
  return {.widths = {96, 192, 384, 384},
          .norm_groups = 1,
          .sample_size = 256,
          .quant_conv = true,
          .post_quant_conv = true,
          .latents_mean = {-0.7571, -0.7089, -0.9113, 0.1075, -0.1745, 0.9653, -0.1517, 1.5508,
                           0.4134, -0.0715, 0.5517, -0.3632, -0.1922, -0.9497, 0.2503, -0.2921},
          .latents_std = {2.8184, 1.4541, 2.3275, 2.6558, 1.2196, 1.7708, 2.6052, 2.0743, 3.2687,
                          2.1526, 2.8652, 1.5579, 1.6382, 1.1253, 2.8251, 1.9160}};
}

namespace {

VaeConfig config_of_class(const JsonObject& json, std::int64_t most_channels) {
  const auto class_name = json.string_or("_class_name", "AutoencoderKL");
  // Qwen-Image's is Wan's with other weights in its decoder.
  if (class_name == "AutoencoderKLWan" || class_name == "AutoencoderKLQwenImage")
    return read_wan_config(json);
  const bool is_flux2 = class_name == "AutoencoderKLFlux2";
  require(class_name == "AutoencoderKL" || is_flux2, json.source(),
          " should describe an AutoencoderKL, AutoencoderKLFlux2, AutoencoderKLWan or ",
          "AutoencoderKLQwenImage, it describes a ", class_name);
  VaeConfig c;
  c.image_channels = json.integer_or("in_channels", 3, 3, most_channels);
  json.integer_or("out_channels", c.image_channels, c.image_channels, c.image_channels);
  c.latent_channels = json.integer_or("latent_channels", 4, 1, kMaxWidth);
  c.widths = json.integers_or("block_out_channels", {64}, 1, kMaxWidth);
  c.layers_per_block = json.integer_or("layers_per_block", 1, 1, 100);
  c.norm_groups = json.integer_or("norm_num_groups", 32, 1, kMaxWidth);
  c.sample_size = read_sample_size(json, 32);
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

}  // namespace

VaeConfig read_vae_config(const JsonObject& json) { return config_of_class(json, 3); }

VaeConfig read_rgba_vae_config(const JsonObject& json) { return config_of_class(json, 4); }

}  // namespace braid
