#include "pipeline/families/qwen_image/controlnets.h"

#include <algorithm>

#include "base/error.h"
#include "models/flux/sharding.h"
#include "pipeline/families/controls.h"

namespace braid {
namespace {

void check_net(const QwenImageConfig& net, const QwenImageConfig& transformer,
               const std::string& folder) {
  check_widths(folder, {{"tokens", net.hidden(), transformer.hidden()},
                        {"packed latents", net.in_channels, transformer.in_channels},
                        {"embedded text", net.text_width, transformer.text_width}});
}

}  // namespace

// The reference's pipeline that fills pictures in has one net.
QwenImageNets read_qwen_image_controlnets(const ModelFiles& files,
                                          const QwenImageConfig& transformer) {
  QwenImageNets nets;
  for (std::size_t i = 0; i < files.controlnets.size(); ++i) {
    const auto json = read_json_object(files.config_of(controlnet_part(i)));
    const auto folder = files.controlnets[i].string();
    nets.push_back(read_qwen_image_controlnet_config(json));
    check_net(nets.back().qwen, transformer, folder);
    require(nets.back().extra_channels == 0 || files.controlnets.size() == 1, "the ControlNet ",
            folder, " fills pictures in: it cannot be used together with others");
  }
  return nets;
}

bool fills_in(const QwenImageNets& nets) {
  return nets.size() == 1 && nets.front().extra_channels > 0;
}

std::vector<Part> qwen_image_controlnet_parts(const QwenImageNets& nets) {
  std::vector<Part> parts;
  for (const auto& c : nets) {
    auto part = control_part(parts.size(), nets.size());
    part.num_heads = c.qwen.num_heads;
    part.lists = {"double_blocks"};
    part.names = [](const Checkpoint&) { return qwen_image_controlnet_names(); };
    part.sharding = [=](SharedModulation modulation) {
      return flux_sharding(blocks_of(c.qwen), modulation);
    };
    part.make = [=](const Weights& w) { (void)QwenImageControlNet(c, w); };
    part.costs = qwen_image_shape(c.qwen).blocks;
    parts.push_back(std::move(part));
  }
  return parts;
}

// The reference sums pictures of one net only; sums of several nets have as many residuals as the
// smallest.
std::int64_t num_residuals(const QwenImageNets& nets) {
  if (nets.empty()) return 0;
  auto least = nets.front().qwen.num_layers;
  for (const auto& net : nets) least = std::min(least, net.qwen.num_layers);
  return least;
}

Controls load_qwen_image_controlnets(const QwenImageNets& nets,
                                     const std::vector<const Part*>& parts,
                                     const WeightsOf& weights_of, const Attend& attend) {
  if (nets.empty()) return {};
  const auto all = load_nets<QwenImageControlNet>(nets, parts, weights_of, attend);
  return {.follow = follow_with<QwenImageControlNet>(all, std::size_t(num_residuals(nets)), 0),
          .modulate = modulate_with<QwenImageControlNet>(all)};
}

}  // namespace braid
