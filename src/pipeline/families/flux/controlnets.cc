#include "pipeline/families/flux/controlnets.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "models/flux/model.h"
#include "models/flux/sharding.h"
#include "pipeline/families/controls.h"

namespace braid {
namespace {

void check_fit(const FluxConfig& net, const FluxConfig& transformer, const std::string& folder) {
  check_widths(folder, {{"tokens", net.hidden(), transformer.hidden()},
                        {"packed latents", net.in_channels, transformer.in_channels},
                        {"embedded text", net.text_width, transformer.text_width},
                        {"pooled prompts", net.pooled_width, transformer.pooled_width}});
}

// A net that sees pixels makes a token of as many as its own layers join.
void check_tokens(const VaeConfig& vae, const std::string& folder) {
  const auto joined = PictureHint::kPixelsOfToken, drawn = 2 * vae.downscale();
  require(joined == drawn, folder, " sees a token in ", joined, "x", joined,
          " pixels, the model with this autoencoder draws one in ", drawn, "x", drawn);
}

// Where several nets are summed, the reference uses only as many residuals per kind of block as all
// nets with any provide. It uses none if the first net has none.
std::size_t num_summed(const std::vector<FluxControlNetConfig>& configs,
                       std::int64_t FluxConfig::*count) {
  auto least = configs.front().flux.*count;
  for (const auto& config : configs)
    if (config.flux.*count > 0) least = std::min(least, config.flux.*count);
  return std::size_t(least);
}

// Adds one after each of `count` blocks, cyclically, as nets that see pixels were trained.
std::vector<Tensor> repeated(const std::vector<Tensor>& residuals, std::int64_t count) {
  std::vector<Tensor> all;
  for (std::int64_t i = 0; i < count && !residuals.empty(); ++i)
    all.push_back(residuals[std::size_t(i) % residuals.size()]);
  return all;
}

}  // namespace

std::vector<FluxControlNetConfig> read_controlnets(const ModelFiles& files,
                                                   const FluxConfig& transformer,
                                                   const VaeConfig& vae) {
  std::vector<FluxControlNetConfig> configs;
  for (std::size_t i = 0; i < files.controlnets.size(); ++i) {
    const auto json = read_json_object(files.config_of(controlnet_part(i)));
    configs.push_back(read_flux_controlnet_config(json));
    const auto folder = files.controlnets[i].string();
    check_fit(configs.back().flux, transformer, folder);
    if (configs.back().hint_channels > 0) check_tokens(vae, folder);
    require((configs.back().hint_channels > 0) == see_pixels(configs), "some ControlNets see ",
            "pictures through layers of their own and others through the autoencoder: they ",
            "cannot be used together");
  }
  return configs;
}

bool see_pixels(const std::vector<FluxControlNetConfig>& configs) {
  return !configs.empty() && configs.front().hint_channels > 0;
}

std::vector<Part> controlnet_parts(const std::vector<FluxControlNetConfig>& configs) {
  std::vector<Part> parts;
  for (const auto& c : configs) {
    auto part = control_part(parts.size(), configs.size());
    part.num_heads = c.flux.num_heads;
    part.lists = {"double_blocks", "single_blocks"};
    part.names = [](const Checkpoint&) { return flux_controlnet_names(); };
    part.sharding = [=](SharedModulation modulation) { return flux_sharding(c.flux, modulation); };
    part.make = [=](const Weights& w) { (void)FluxControlNet(c, w); };
    part.costs = flux_shape(c.flux).blocks;
    parts.push_back(std::move(part));
  }
  return parts;
}

std::vector<int> controlnet_modes(const std::vector<FluxControlNetConfig>& configs) {
  std::vector<int> modes;
  for (const auto& config : configs) modes.push_back(int(config.num_modes));
  return modes;
}

std::int64_t num_residuals(const std::vector<FluxControlNetConfig>& configs,
                           std::int64_t num_double) {
  const auto doubles = std::int64_t(num_summed(configs, &FluxConfig::num_double));
  const auto singles = std::int64_t(num_summed(configs, &FluxConfig::num_single));
  return (see_pixels(configs) && doubles > 0 ? num_double : doubles) + singles;
}

Controls load_controlnets(const std::vector<FluxControlNetConfig>& configs, std::int64_t num_double,
                          const std::vector<const Part*>& parts, const WeightsOf& weights_of,
                          const Attend& attend) {
  if (configs.empty()) return {};
  const auto nets = load_nets<FluxControlNet>(configs, parts, weights_of, attend);
  const auto doubles = num_summed(configs, &FluxConfig::num_double);
  const auto singles = num_summed(configs, &FluxConfig::num_single);
  const bool are_repeated = see_pixels(configs);
  const auto follow_once = follow_with<FluxControlNet>(nets, doubles, singles);
  const auto follow = [=](const DenoiserInput& in) {
    auto sum = follow_once(in);
    if (are_repeated) sum.doubles = repeated(sum.doubles, num_double);
    return sum;
  };
  const auto encode = [=](int number, const Tensor& picture_13HW) {
    const auto& [page, net] = (*nets)[std::size_t(number)];
    const auto in_use = page.use();
    return net.encode(picture_13HW);
  };
  return {.follow = follow, .encode = encode, .modulate = modulate_with<FluxControlNet>(nets)};
}

ControlInput controlnet_input(const FluxControlNetConfig& config, const DenoiserInput& in,
                              std::optional<int> mode, double guidance) {
  const auto& text = in.text;
  const auto batch = text.x_BLC.size(0);
  ControlInput control{.x_BNC = {}, .text = text, .pooled_BC = in.pooled_BC};
  if (config.flux.guidance_embeds)
    control.guidance_B = at::full({batch}, guidance, text.ids_LA.options());
  if (config.num_modes == 0) return control;
  const auto pad_B1C = at::zeros({batch, 1, text.x_BLC.size(2)}, text.x_BLC.options());
  control.text.x_BLC = at::cat({pad_B1C, text.x_BLC}, 1);
  control.text.ids_LA = at::cat({text.ids_LA.narrow(0, 0, 1), text.ids_LA});
  control.text.is_pad_L =
      at::zeros({control.text.ids_LA.size(0)}, text.ids_LA.options().dtype(at::kBool));
  control.text.is_pad_L.narrow(0, 0, 1).fill_(true);
  control.mode = at::full({1}, *mode, text.ids_LA.options().dtype(at::kLong));
  return control;
}

}  // namespace braid
