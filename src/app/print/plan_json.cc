#include "app/print/plan_json.h"

#include "app/print/report.h"

namespace braid {
namespace {

OrderedJson json_of(const Degrees& g) {
  return {{"dp", g.dp},     {"cfg", g.cfg},         {"pp", g.pp}, {"layers", g.pp},
          {"ring", g.ring}, {"ulysses", g.ulysses}, {"tp", g.tp}};
}

OrderedJson json_of(const RankBytes& b) {
  return {{"transformer", b.transformer},
          {"text_encoders", b.text_encoders},
          {"vae", b.vae},
          {"activations", b.activations},
          {"keys_values", b.keys_values},
          {"modulations", b.modulations},
          {"rotary_tables", b.ropes},
          {"staging", b.staging},
          {"kept_references", b.kept},
          {"decoding", b.decoding},
          {"recorded_step", b.recorded},
          {"link", b.link},
          {"locked_on_host", b.locked},
          {"peak", b.peak()}};
}

OrderedJson json_of(const StepTime& step) {
  auto communication = OrderedJson::object();
  for (const auto& [axis, seconds] : step.communication) communication[axis] = seconds;
  return {{"compute", step.compute},        {"memory", step.memory},   {"gaps", step.gaps},
          {"communication", communication}, {"bubbles", step.bubbles}, {"copies", step.copies},
          {"total", step.total()}};
}

OrderedJson json_of(const PlannedLayout& l) {
  OrderedJson json = {{"layout", layout_name(l.grid)}, {"degrees", json_of(l.grid)}};
  if (l.grid.shares != AxisShares{}) json["shares"] = shares_json(l.grid.shares);
  json["fits"] = l.fits();
  if (!l.fits()) json.update({{"obstacle", obstacle_name(l.obstacle)}, {"reason", l.reason}});
  if (!l.fits() && l.obstacle != Obstacle::kMemory) return json;
  json["seconds_per_picture"] = l.seconds_per_picture;
  json["seconds_per_step"] = json_of(l.step);
  json["bytes"] = {{"first_rank", json_of(l.first_rank)}};
  if (l.grid.product() > 1) json["bytes"]["largest_other"] = json_of(l.largest_other);
  json["step_traffic"] = traffic_json(l.traffic);
  return json;
}

OrderedJson json_of(const Machine& machine) {
  auto devices = OrderedJson::array();
  for (const auto& d : machine.devices)
    devices.push_back({{"name", d.name}, {"memory_bytes", std::int64_t(d.memory)}});
  return {{"devices", devices},
          {"link", {{"name", machine.link.name}, {"bytes_per_second", machine.link.speed}}}};
}

}  // namespace

std::string plan_json(const PlanReport& report, const std::vector<PlannedLayout>& layouts) {
  const auto& j = report.job;
  OrderedJson json = {{"model", model_of(report)},
                      {"size", {{"width", j.width}, {"height", j.height}}},
                      {"image_tokens", j.image_tokens()},
                      {"text_tokens", j.text_tokens + j.pictures.tokens_behind_prompt},
                      {"reference_tokens", j.pictures.reference_tokens()},
                      {"dtype", c10::getDtypeNames(j.dtype).first},
                      {"steps", j.steps},
                      {"pictures", j.num_pictures},
                      {"batch_size", j.batch_size},
                      {"branches", j.branches},
                      {"flags", flags_of(j)}};
  json.update(json_of(report.machine));
  json["layouts"] = OrderedJson::array();
  for (const auto& layout : layouts)
    if (layout.fits() || report.flags.all) json["layouts"].push_back(json_of(layout));
  json["out"] = OrderedJson::object();
  for (const auto& [count, example] : count_out(layouts))
    json["out"][obstacle_name(example->obstacle)] = count;
  for (const auto& remedy : report.remedies)
    json["would_fit"].push_back(
        {{"flags", flags_of(remedy.job)}, {"layout", json_of(remedy.layout)}});
  if (const auto& alone = report.faster_alone)
    json["faster_alone"] = {{"device", alone->device}, {"seconds_per_picture", alone->seconds}};
  if (report.slower_codes) json["slower_codes"] = *report.slower_codes;
  return indented_json(json);
}

}  // namespace braid
