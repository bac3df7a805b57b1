#include "app/commands/commands.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/commands/deployments.h"
#include "app/files/input_pictures.h"
#include "app/machine/launched.h"
#include "app/print/readable_json.h"
#include "app/print/standard_output.h"
#include "comm/mesh.h"

namespace braid {
namespace {

std::string scientific(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", value);
  return text;
}

// An injected fault that no part shows says nothing of the layout, but of the proof.
bool misses_fault(const Verdict& verdict) {
  return verdict.has_fault && !verdict.first_divergent();
}

OrderedJson json_of(const Verdict& verdict, const std::string& layout) {
  OrderedJson blocks = OrderedJson::array();
  for (const auto& b : verdict.blocks)
    blocks.push_back({{"where", b.where},
                      {"difference", b.difference},
                      {"tolerance", b.tolerance},
                      {"rank", b.rank}});
  const auto* const first = verdict.first_divergent();
  return {{"layout", layout},
          {"ranks", verdict.num_ranks},
          {"one_rank_paged", verdict.one_rank_was_paged},
          {"tolerance", verdict.tolerances.block},
          {"right", first == nullptr && !misses_fault(verdict)},
          {"first_divergent", first ? OrderedJson(first->where) : OrderedJson()},
          {"blocks", blocks}};
}

std::string table_of(const Verdict& verdict, const std::string& layout) {
  std::string table = layout + "\nlargest difference after each part, relative to one rank's\n\n";
  for (const auto& b : verdict.blocks) {
    const std::string padding(b.where.size() < 28 ? 28 - b.where.size() : 1, ' ');
    table += "  " + b.where + padding + scientific(b.difference) + "  rank " +
             std::to_string(b.rank) + (b.is_right() ? "\n" : "  differs\n");
  }
  const auto* const first = verdict.first_divergent();
  const auto& [of_block, of_attention] = verdict.tolerances;
  if (first)
    return table + "\nwrong: " + first->where + " on rank " + std::to_string(first->rank) +
           " is the first beyond the tolerance of " + scientific(first->tolerance) + "\n";
  if (misses_fault(verdict))
    return table + "\nundecided: the injected fault changes no part beyond the tolerance of " +
           scientific(of_block) + ", of attention " + scientific(of_attention) +
           ": --dtype float32 has finer ones\n";
  const auto attention =
      of_attention == of_block ? "" : ", attention of " + scientific(of_attention);
  return table + "\nright: every part is within the tolerance of " + scientific(of_block) +
         attention + "\n";
}

}  // namespace

int verify_layout(const VerifyFlags& flags) {
  warn_of(flags.unused);
  const auto deployment = deployed(flags);
  auto options = flags.options;
  options.probe.pictures = read_input_pictures(flags.pictures).pictures;
  const auto verdict = verify(deployment, options);
  const int code = verdict.first_divergent() || misses_fault(verdict) ? 1 : 0;
  if (!is_first_rank()) return code;
  const auto layout = to_string(deployment.degrees());
  print(flags.json ? indented_json(json_of(verdict, layout)) : table_of(verdict, layout));
  return code;
}

}  // namespace braid
