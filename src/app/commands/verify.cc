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

OrderedJson json_of(const Verdict& verdict, const std::string& layout) {
  OrderedJson blocks = OrderedJson::array();
  for (const auto& b : verdict.blocks)
    blocks.push_back({{"where", b.where}, {"difference", b.difference}, {"rank", b.rank}});
  const auto* const first = verdict.first_divergent();
  return {{"layout", layout},
          {"ranks", verdict.num_ranks},
          {"one_rank_paged", verdict.one_rank_was_paged},
          {"tolerance", verdict.tolerance},
          {"right", first == nullptr},
          {"first_divergent", first ? OrderedJson(first->where) : OrderedJson()},
          {"blocks", blocks}};
}

std::string table_of(const Verdict& verdict, const std::string& layout) {
  std::string table = layout + "\nlargest difference after each part, relative to one rank's\n\n";
  for (const auto& b : verdict.blocks) {
    const std::string padding(b.where.size() < 28 ? 28 - b.where.size() : 1, ' ');
    table += "  " + b.where + padding + scientific(b.difference) + "  rank " +
             std::to_string(b.rank) + (b.difference > verdict.tolerance ? "  differs\n" : "\n");
  }
  const auto* const first = verdict.first_divergent();
  const auto limit = "the tolerance of " + scientific(verdict.tolerance);
  return table + (first ? "\nwrong: " + first->where + " on rank " + std::to_string(first->rank) +
                              " is the first beyond " + limit + "\n"
                        : "\nright: every part is within " + limit + "\n");
}

}  // namespace

int verify_layout(const VerifyFlags& flags) {
  warn_of(flags.unused);
  const auto deployment = deployed(flags);
  auto options = flags.options;
  options.probe.pictures = read_input_pictures(flags.pictures).pictures;
  const auto verdict = verify(deployment, options);
  if (!is_first_rank()) return verdict.first_divergent() ? 1 : 0;
  const auto layout = to_string(deployment.degrees());
  print(flags.json ? indented_json(json_of(verdict, layout)) : table_of(verdict, layout));
  return verdict.first_divergent() ? 1 : 0;
}

}  // namespace braid
