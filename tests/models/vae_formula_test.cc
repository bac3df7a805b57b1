// The autoencoder of FLUX.1 against its formula in float64, written from diffusers' AutoencoderKL
// with plain tensor operations on weights drawn at random, and the blending of its tiles, pixel by
// pixel, from its blend_v and blend_h.
#include <c10/core/InferenceMode.h>

#include "drawn.h"
#include "dumps.h"
#include "models/vae/model.h"
#include "models/vae/names.h"
#include "models/vae/tiles.h"

namespace braid::vae_formula_test {

// --------------------------------------------------------------------------------- the network

struct Form {
  bool attention, quant;
};

VaeConfig config_for(Form form) {
  return {.latent_channels = 3,
          .widths = {6, 9, 12},
          .layers_per_block = 2,
          .norm_groups = 3,
          .sample_size = 1024,
          .mid_attention = form.attention,
          .quant_conv = form.quant,
          .post_quant_conv = form.quant};
}

class Definition {
 public:
  explicit Definition(Form form) : form_(form), c_(config_for(form)) {
    draw_ends("encoder.", 3, c_.widths.front(), c_.widths.back(), 2 * c_.latent_channels);
    draw_ends("decoder.", c_.latent_channels, c_.widths.back(), c_.widths.front(), 3);
    if (form.quant) {
      w_.add_convolution("quant_conv", 2 * c_.latent_channels, 2 * c_.latent_channels, 1);
      w_.add_convolution("post_quant_conv", c_.latent_channels, c_.latent_channels, 1);
    }
    auto width = c_.widths.front();
    for (int level = 0; level < 3; ++level) {
      const auto block = "encoder.down_blocks." + std::to_string(level) + ".";
      draw_resnets(block, 2, width, c_.widths[std::size_t(level)]);
      width = c_.widths[std::size_t(level)];
      if (level < 2) w_.add_convolution(block + "downsamplers.0.conv", width, width, 3);
    }
    for (int level = 0; level < 3; ++level) {  // from the coarsest
      const auto block = "decoder.up_blocks." + std::to_string(level) + ".";
      draw_resnets(block, 3, width, c_.widths[std::size_t(2 - level)]);
      width = c_.widths[std::size_t(2 - level)];
      if (level < 2) w_.add_convolution(block + "upsamplers.0.conv", width, width, 3);
    }
  }

  Vae vae() const {
    const auto checkpoint = checkpoint_of(w_.all());
    return {c_, Weights(checkpoint, vae_names(checkpoint), {})};
  }

  Tensor moments(const Tensor& picture) const {
    auto x = convolved("encoder.conv_in", picture.to(at::kDouble), 1);
    for (int level = 0; level < 3; ++level) {
      const auto block = "encoder.down_blocks." + std::to_string(level) + ".";
      x = resnets(block, 2, x);
      if (level == 2) continue;  // the border is on the right and at the bottom alone
      x = w_.convolution(block + "downsamplers.0.conv", at::constant_pad_nd(x, {0, 1, 0, 1}), 2, 0);
    }
    x = convolved("encoder.conv_out", swish(normed("encoder.conv_norm_out", mid("encoder.", x))),
                  1);
    return form_.quant ? convolved("quant_conv", x, 0) : x;
  }

  Tensor picture(const Tensor& latents) const {
    auto x = latents.to(at::kDouble);
    if (form_.quant) x = convolved("post_quant_conv", x, 0);
    x = mid("decoder.", convolved("decoder.conv_in", x, 1));
    for (int level = 0; level < 3; ++level) {
      const auto block = "decoder.up_blocks." + std::to_string(level) + ".";
      x = resnets(block, 3, x);
      if (level < 2)
        x = convolved(block + "upsamplers.0.conv",
                      x.repeat_interleave(2, 2).repeat_interleave(2, 3), 1);
    }
    return convolved("decoder.conv_out", swish(normed("decoder.conv_norm_out", x)), 1);
  }

 private:
  void draw_ends(const std::string& part, std::int64_t in, std::int64_t first, std::int64_t last,
                 std::int64_t out) {
    w_.add_convolution(part + "conv_in", in, first, 3);
    w_.add_norm(part + "conv_norm_out", last);
    w_.add_convolution(part + "conv_out", last, out, 3);
    const auto width = c_.widths.back();
    draw_resnets(part + "mid_block.", 2, width, width);
    if (!form_.attention) return;
    const auto attention = part + "mid_block.attentions.0.";
    w_.add_norm(attention + "group_norm", width);
    for (const std::string name : {"to_q", "to_k", "to_v", "to_out.0"})
      w_.add_layer(attention + name, width, width);
  }
  void draw_resnets(const std::string& block, int count, std::int64_t in, std::int64_t out) {
    for (int i = 0; i < count; ++i, in = out) {
      const auto resnet = block + "resnets." + std::to_string(i) + ".";
      w_.add_norm(resnet + "norm1", in);
      w_.add_convolution(resnet + "conv1", in, out, 3);
      w_.add_norm(resnet + "norm2", out);
      w_.add_convolution(resnet + "conv2", out, out, 3);
      if (in != out) w_.add_convolution(resnet + "conv_shortcut", in, out, 1);
    }
  }

  Tensor convolved(const std::string& name, const Tensor& x, std::int64_t padding) const {
    return w_.convolution(name, x, 1, padding);
  }
  Tensor normed(const std::string& name, const Tensor& x) const {
    const auto groups = x.unflatten(1, {c_.norm_groups, -1});
    const auto centred = groups - groups.mean({2, 3, 4}, true);
    const auto scaled = centred / (centred.square().mean({2, 3, 4}, true) + 1e-6).sqrt();
    const auto over_pixels = [&](const char* of) { return w_(name + of).view({-1, 1, 1}); };
    return scaled.flatten(1, 2) * over_pixels(".weight") + over_pixels(".bias");
  }
  Tensor resnets(const std::string& block, int count, Tensor x) const {
    for (int i = 0; i < count; ++i) {
      const auto resnet = block + "resnets." + std::to_string(i) + ".";
      const auto h = convolved(resnet + "conv1", swish(normed(resnet + "norm1", x)), 1);
      const auto y = convolved(resnet + "conv2", swish(normed(resnet + "norm2", h)), 1);
      x = y + (x.size(1) == y.size(1) ? x : convolved(resnet + "conv_shortcut", x, 0));
    }
    return x;
  }
  Tensor attended(const std::string& attention, const Tensor& x) const {
    const auto pixels = normed(attention + "group_norm", x).flatten(2).transpose(1, 2);
    const auto of = [&](const std::string& name) { return w_.layer(attention + name, pixels); };
    const auto scores =
        of("to_q").matmul(of("to_k").transpose(1, 2)) / std::sqrt(double(x.size(1)));
    const auto y = w_.layer(attention + "to_out.0", at::softmax(scores, -1).matmul(of("to_v")));
    return x + y.transpose(1, 2).reshape(x.sizes());
  }
  Tensor mid(const std::string& part, const Tensor& x) const {
    const auto block = part + "mid_block.";
    const auto of = [&](int i, const Tensor& h) {  // one of the two
      const auto resnet = block + "resnets." + std::to_string(i) + ".";
      const auto a = convolved(resnet + "conv1", swish(normed(resnet + "norm1", h)), 1);
      return h + convolved(resnet + "conv2", swish(normed(resnet + "norm2", a)), 1);
    };
    const auto h = of(0, x);
    return of(1, form_.attention ? attended(block + "attentions.0.", h) : h);
  }

  Form form_;
  VaeConfig c_;
  Drawn w_;
};

// float32 against float64 through some thirty layers.
constexpr double kRounding = 1e-5;

TEST(AutoencoderKl, EqualsItsFormula) {
  const c10::InferenceMode no_autograd;
  for (const auto form : {Form{true, true}, Form{false, true}, Form{true, false}}) {
    const Definition definition(form);
    const auto vae = definition.vae();
    const auto picture = at::rand({2, 3, 20, 12}) * 2 - 1, latents = at::randn({2, 3, 5, 3});
    const auto moments = definition.moments(picture);
    const auto got = vae.encode(picture, Tiles::kNever);
    ASSERT_EQ(got.mean.sizes(), latents.sizes());
    EXPECT_LT(largest_error(got.mean, moments.narrow(1, 0, 3)), kRounding) << form.attention;
    EXPECT_LT(largest_error(got.logvar, moments.narrow(1, 3, 3)), kRounding) << form.attention;
    EXPECT_LT(largest_error(vae.decode(latents, Tiles::kNever), definition.picture(latents)),
              kRounding)
        << form.attention;
  }
}

// ----------------------------------------------------------------------------------- the tiles

// diffusers: tile[y] = above[y - extent] * (1 - y / extent) + tile[y] * (y / extent), a bfloat16
// number times a Python number being rounded to bfloat16, and so is their sum.
using Plane = std::vector<std::vector<float>>;

struct Rounded {
  bool to_bfloat16;
  float operator()(float x) const { return to_bfloat16 ? float(c10::BFloat16(x)) : x; }
};

void blend(const Plane& before, Plane& tile, std::size_t extent, bool down, Rounded rounded) {
  const auto side = [&](const Plane& p) { return down ? p.size() : p.front().size(); };
  extent = std::min({side(before), side(tile), extent});
  for (std::size_t i = 0; i < tile.size(); ++i)
    for (std::size_t j = 0; j < tile.front().size(); ++j) {
      const auto at = down ? i : j;
      if (at >= extent) continue;
      const auto far = side(before) - extent + at;
      const float old = down ? before[far][j] : before[i][far];
      const double weight = double(at) / double(extent);
      tile[i][j] = rounded(rounded(old * float(1 - weight)) + rounded(tile[i][j] * float(weight)));
    }
}

// Tiles of 12, every 9 (a third is no number of bfloat16), made of one random number each, so that
// only blending decides.
TEST(BlendedTiles, AreTheReferencesPixelByPixel) {
  constexpr std::size_t kTile = 12, kStride = 9, kOverlap = 3;
  for (const bool to_bfloat16 : {false, true})
    for (const auto& [rows, columns] : {std::pair<std::size_t, std::size_t>(20, 28), {10, 19}}) {
      const Rounded rounded{to_bfloat16};
      const auto dtype = to_bfloat16 ? at::kBFloat16 : at::kFloat;
      const auto x = at::zeros({1, 1, std::int64_t(rows), std::int64_t(columns)}, dtype);
      std::vector<float> made;
      const auto got = map_tiles(x, {.in_size = kTile, .out_size = kTile}, [&](const Tensor& tile) {
        const auto filled = at::randn({1}).to(dtype).expand(tile.sizes()).clone();
        made.push_back(filled.flatten()[0].item<float>());
        return filled;
      });
      ASSERT_EQ(got.sizes(), x.sizes());
      std::vector<Plane> above, row;
      std::size_t next = 0;
      for (std::size_t i = 0; i < rows; i += kStride, above = std::move(row), row = {})
        for (std::size_t j = 0; j < columns; j += kStride) {
          Plane tile(std::min(kTile, rows - i),
                     std::vector(std::min(kTile, columns - j), made[next++]));
          if (i > 0) blend(above[row.size()], tile, kOverlap, true, rounded);
          if (j > 0) blend(row.back(), tile, kOverlap, false, rounded);
          for (std::size_t a = 0; a < std::min(kStride, tile.size()); ++a)
            for (std::size_t b = 0; b < std::min(kStride, tile.front().size()); ++b)
              ASSERT_EQ(got[0][0][std::int64_t(i + a)][std::int64_t(j + b)].item<float>(),
                        tile[a][b])
                  << i + a << ", " << j + b << (to_bfloat16 ? " in bfloat16" : "");
          row.push_back(tile);
        }
    }
}

}  // namespace braid::vae_formula_test
