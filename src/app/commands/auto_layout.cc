#include "app/commands/auto_layout.h"

#include "app/flags/flag_values.h"
#include "app/print/readable.h"
#include "pipeline/devices.h"
#include "pipeline/planner/fastest.h"

namespace braid {

void add_auto_layout_flag(FlagReader& read, bool& is_auto) {
  read.text("--layout", "auto", "Layout",
            "Take the degrees that braid plan puts first for the devices at\n"
            "hand, and report them",
            [&is_auto](const std::string& flag, const std::string& text) {
              is_auto = choice<bool>(flag, text, {{"auto", true}});
            });
}

void check_auto_layout(bool is_auto, const Layout& l) {
  if (!is_auto) return;
  const bool has_degrees = l.tp * l.ring * l.ulysses * l.cfg * l.dp * l.layer_split > 1;
  require(!has_degrees, "--layout auto chooses the degrees itself: leave out --tp, --ring, ",
          "--ulysses, --layer-split, --cfg-parallel and --dp, or leave out --layout");
}

std::string choose_degrees(const PipelineOptions& options, const Request& request, int num_ranks,
                           Layout& layout) {
  auto names = device_names(options);
  if (names.size() == 1) names.resize(std::size_t(num_ranks), names.front());
  const auto chosen = fastest_layout(options, request, names);
  const auto& g = chosen.grid;
  layout.tp = g.tp;
  layout.ring = g.ring;
  layout.ulysses = g.ulysses;
  layout.cfg = g.cfg;
  layout.dp = g.dp;
  layout.layer_split = g.layers;
  return text_of("layout ", layout_name(g), ": predicted ",
                 readable_seconds(chosen.seconds_per_picture), " per picture");
}

}  // namespace braid
