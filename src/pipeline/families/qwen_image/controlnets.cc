#include "pipeline/families/qwen_image/controlnets.h"

#include <algorithm>

#include "base/error.h"
#include "models/flux/sharding.h"
#include "pipeline/families/controls.h"

namespace braid {
namespace {

void check_net(const QwenImageConfig& net, const QwenImageConfig& transformer,
               const std::string& folder) {
  const auto check_width = [&](const char* of, std::int64_t has, std::int64_t wants) {
    require(has == wants, "the ControlNet ", folder, " has ", of, " of width ", has,
            ", the transformer's are of ", wants);
  };
  check_width("tokens", net.hidden(), transformer.hidden());
  check_width("packed latents", net.in_channels, transformer.in_channels);
  check_width("embedded text", net.text_width, transformer.text_width);
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
    const auto number = parts.size();
    const auto which = nets.size() == 1 ? "" : " " + std::to_string(number + 1);
    const auto sharding = [=](SharedModulation modulation) {
      return flux_sharding(blocks_of(c.qwen), modulation);
    };
    parts.push_back({.role = Part::Role::kControl,
                     .folder = controlnet_part(number),
                     .label = "ControlNet" + which,
                     .num_heads = c.qwen.num_heads,
                     .lists = {"double_blocks"},
                     .names = [](const Checkpoint&) { return qwen_image_controlnet_names(); },
                     .sharding = sharding,
                     .make = [=](const Weights& w) { (void)QwenImageControlNet(c, w); },
                     .costs = qwen_image_shape(c.qwen).blocks});
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
  std::vector<Paged<QwenImageControlNet>> loaded;
  for (std::size_t i = 0; i < nets.size(); ++i) {
    const auto w = weights_of(*parts[i]);
    loaded.push_back({.page = w.page(), .network = QwenImageControlNet(nets[i], w, attend)});
  }
  const auto all =
      std::make_shared<const std::vector<Paged<QwenImageControlNet>>>(std::move(loaded));
  return {.follow = follow_with<QwenImageControlNet>(all, std::size_t(num_residuals(nets)), 0),
          .modulate = modulate_with<QwenImageControlNet>(all)};
}

}  // namespace braid
