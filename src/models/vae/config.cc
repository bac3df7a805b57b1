#include "models/vae/config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/vae/residual_wan.h"

namespace braid {
namespace {

constexpr std::int64_t kMaxWidth = 1 << 16;

// One for each level: the reference builds as many levels as a list has.
void check_block_types(const JsonObject& json, const char* key, const char* wanted,
                       std::size_t levels) {
  if (!json.has(key)) return;
  const auto types = json.strings_or(key, {});
  require(types.size() == levels, json.source(), ": '", key, "' should have as many entries as ",
          "'block_out_channels', ", levels, ", it has ", types.size());
  for (const auto& type : types)
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

// A list of numbers, or of flags.
template <class Value>
std::vector<Value> list_or(const JsonObject& json, const char* key, std::vector<Value> otherwise) {
  constexpr bool are_flags = std::is_same_v<Value, bool>;
  if (!json.has(key)) return otherwise;
  const auto& list = json.at(key);
  const bool fits = list.is_array() && std::all_of(list.begin(), list.end(), [](const Json& x) {
                      return are_flags ? x.is_boolean() : x.is_number();
                    });
  require(fits, json.source(), ": '", key, "' should be a list of ",
          are_flags ? "true and false" : "numbers");
  return list.get<std::vector<Value>>();
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
void check_wan_kind(const JsonObject& json, bool is_residual) {
  constexpr const char* kKey = "is_residual";
  require((is_residual ? json.is_set(kKey) : json.flag_or(kKey, false)) == is_residual,
          json.source(), ": 'is_residual' should be ", is_residual ? "true" : "false");
  require(!json.has("patch_size"), json.source(), ": 'patch_size' should be null");
  require(!json.has("attn_scales") || json.at("attn_scales").empty(), json.source(),
          ": 'attn_scales' should be empty");
}

// Whether levels halve time. The reference takes the number of entries for that of halvings.
std::vector<bool> read_temporal(const JsonObject& json, const VaeConfig& c,
                                std::vector<bool> otherwise) {
  auto flags = list_or(json, "temperal_downsample", std::move(otherwise));
  require(flags.size() + 1 == c.widths.size(), json.source(),
          ": 'temperal_downsample' should have an entry for each of the ", c.widths.size(),
          " levels of 'dim_mult' but the last, it has ", flags.size());
  return flags;
}

// Fields that mean the same to Wan's and Qwen-Image-2.1's.
void read_wan_fields(const JsonObject& json, VaeConfig& c, std::int64_t decoder_base,
                     const std::vector<std::int64_t>& default_multiples) {
  const auto base = json.integer_or("base_dim", c.widths.front(), 1, kMaxWidth);
  const auto own_base =
      json.integer_or("decoder_base_dim", decoder_base > 0 ? decoder_base : base, 1, kMaxWidth);
  const auto multiples = json.integers_or("dim_mult", default_multiples, 1, 1024);
  require(!multiples.empty() && multiples.size() <= 8, json.source(),
          ": 'dim_mult' should have 1 to 8 levels, it has ", multiples.size());
  c.own_encoder_stem = multiples.front() == 1 ? 0 : base;
  c.widths.clear();
  c.own_decoder_widths.clear();
  for (const auto multiple : multiples) {
    c.widths.push_back(base * multiple);
    if (own_base != base) c.own_decoder_widths.push_back(own_base * multiple);
  }
  c.latent_channels = json.integer_or("z_dim", c.latent_channels, 1, kMaxWidth);
  c.layers_per_block = json.integer_or("num_res_blocks", c.layers_per_block, 1, 100);
  c.latents_mean = list_or(json, "latents_mean", c.latents_mean);
  c.latents_std = list_or(json, "latents_std", c.latents_std);
  check_wan_latents(c, json.source());
  json.integer_or("scale_factor_spatial", c.downscale(), c.downscale(), c.downscale());
}

// Qwen-Image-Layered's sees and draws alpha; its class calls both numbers of channels one.
VaeConfig read_wan_config(const JsonObject& json, std::int64_t most_channels) {
  check_wan_kind(json, /*is_residual=*/false);
  auto c = wan_vae_config();
  c.image_channels = json.integer_or("input_channels", c.image_channels, 3, most_channels);
  for (const char* const key : {"in_channels", "out_channels"})
    (void)json.integer_or(key, c.image_channels, c.image_channels, c.image_channels);
  read_wan_fields(json, c, /*decoder_base=*/0, {1, 2, 4, 4});
  (void)read_temporal(json, c, {false, true, true});  // checked: a picture has no time to halve
  return c;
}

// A shortcut's channels are made of equally many of its level's.
void check_shortcuts(const std::vector<std::optional<WanShortcut>>& shortcuts, std::int64_t in,
                     const std::string& source) {
  for (const auto& shortcut : shortcuts) {
    if (!shortcut) continue;
    require(fits(*shortcut, in), source, ": 'dim_mult' does not let a shortcut share ", in,
            " channels to ", shortcut->out);
    in = shortcut->out;
  }
}

// Absent fields are the reference class's: a null decoder_base_dim is the encoder's.
VaeConfig read_qwen21_config(const JsonObject& json) {
  check_wan_kind(json, /*is_residual=*/true);
  auto c = qwen21_vae_config();
  c.image_channels = json.integer_or("in_channels", c.image_channels, 3, 4);
  json.integer_or("out_channels", c.image_channels, c.image_channels, c.image_channels);
  read_wan_fields(json, c, json.is_null("decoder_base_dim") ? 0 : 144, {1, 2, 4, 8, 8});
  require(c.widths.size() > 1, json.source(), ": 'dim_mult' should have at least 2 levels, it has ",
          c.widths.size());
  c.temporal = read_temporal(json, c, c.temporal);
  check_shortcuts(encoder_shortcuts(c), c.encoder_stem(), json.source());
  check_shortcuts(decoder_shortcuts(c), c.decoder_widths().back(), json.source());
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

VaeConfig qwen21_vae_config() {
  return {.image_channels = 4,
          .latent_channels = 64,
          .widths = {96, 192, 384, 768, 768},
          .own_decoder_widths = {144, 288, 576, 1152, 1152},
          .norm_groups = 1,
          .sample_size = 256,
          .quant_conv = true,
          .post_quant_conv = true,
          .latents_mean = {0.5126,  0.7721,  -0.0631, 1.3506,  -0.7855, -2.1025, -0.3458, 1.3722,
                           1.8873,  -1.7177, -0.651,  0.2732,  0.7562,  -0.6163, -1.0277, 3.8363,
                           2.021,   0.0472,  0.932,   2.0087,  2.4954,  -0.1391, -1.4249, 1.8464,
                           -0.5236, 1.2826,  3.7046,  -1.3035, 2.7286,  -1.4518, -1.9036, -1.9955,
                           -0.0342, -1.0265, -0.7636, 3.0555,  0.0746,  -3.0751, -0.1076, 1.7376,
                           -1.0914, -1.9435, -0.2784, -1.368,  0.4809,  -0.4433, 0.3764,  0.5729,
                           -2.0595, 1.096,   -1.326,  -2.0211, -5.0179, 0.5275,  4.0162,  1.8505,
                           0.3026,  1.9373,  1.4937,  0.2632,  0.5547,  -1.7121, -0.1562, 0.0304},
          .latents_std = {3.2001, 3.2936, 3.4321, 3.0091, 3.1061, 4.0379, 4.0705, 3.791,
                          3.0785, 3.65,   3.9308, 3.0904, 2.8778, 3.7675, 3.732,  5.0756,
                          3.2864, 4.0397, 3.1317, 4.0443, 2.9249, 3.9454, 3.0988, 4.2489,
                          3.4896, 3.8513, 3.9323, 3.4719, 3.7498, 4.283,  3.5694, 4.2467,
                          3.9037, 3.2947, 5.077,  3.5075, 3.27,   3.4767, 2.8063, 5.1125,
                          3.5327, 4.7833, 3.1286, 4.1819, 3.8527, 3.8312, 3.5605, 4.3875,
                          3.9624, 4.0168, 3.5643, 4.055,  5.5614, 4.2963, 4.408,  3.4959,
                          3.8747, 3.7608, 3.5735, 3.149,  3.7662, 3.6746, 3.4563, 3.8161},
          .temporal = {false, true, true, true}};
}

namespace {

VaeConfig config_of_class(const JsonObject& json, std::int64_t most_channels) {
  const auto class_name = json.class_name_or("AutoencoderKL");
  // Qwen-Image's is Wan's with other weights in its decoder.
  if (class_name == "AutoencoderKLWan" || class_name == "AutoencoderKLQwenImage")
    return read_wan_config(json, most_channels);
  const bool may_be_rgba = most_channels == 4;
  if (class_name == "AutoencoderKLQwenImage21" && may_be_rgba) return read_qwen21_config(json);
  const bool is_flux2 = class_name == "AutoencoderKLFlux2";
  require(class_name == "AutoencoderKL" || is_flux2, json.source(),
          " should describe an AutoencoderKL, AutoencoderKLFlux2, AutoencoderKLWan",
          may_be_rgba ? ", AutoencoderKLQwenImage or AutoencoderKLQwenImage21"
                      : " or AutoencoderKLQwenImage",
          ", it describes a ", class_name);
  VaeConfig c;
  c.image_channels = json.integer_or("in_channels", 3, 3, most_channels);
  json.integer_or("out_channels", c.image_channels, c.image_channels, c.image_channels);
  c.latent_channels = json.integer_or("latent_channels", 4, 1, kMaxWidth);
  c.widths = json.integers_or("block_out_channels", {64}, 1, kMaxWidth);
  c.layers_per_block = json.integer_or("layers_per_block", 1, 1, 100);
  c.norm_groups = json.integer_or("norm_num_groups", 32, 1, kMaxWidth);
  c.sample_size = read_sample_size(json, 32);
  c.mid_attention = json.is_set("mid_block_add_attention");
  c.quant_conv = json.is_set("use_quant_conv");
  c.post_quant_conv = json.is_set("use_post_quant_conv");
  c.scaling_factor = json.number_or("scaling_factor", 0.18215);
  c.shift_factor = json.number_or("shift_factor", 0);
  const auto activation = json.string_or("act_fn", "silu");
  require(activation == "silu" || activation == "swish", json.source(),
          ": 'act_fn' should be silu, it is ", activation);
  if (is_flux2) read_flux2_fields(json, c);
  check_block_types(json, "down_block_types", "DownEncoderBlock2D", c.widths.size());
  check_block_types(json, "up_block_types", "UpDecoderBlock2D", c.widths.size());
  check_widths(c, c.widths, "block_out_channels", json.source());
  check_widths(c, c.decoder_widths(), "decoder_block_out_channels", json.source());
  require(c.scaling_factor != 0, json.source(), ": 'scaling_factor' should not be 0");
  return c;
}

}  // namespace

VaeConfig read_vae_config(const JsonObject& json) { return config_of_class(json, 3); }

VaeConfig read_rgba_vae_config(const JsonObject& json) { return config_of_class(json, 4); }

}  // namespace braid
