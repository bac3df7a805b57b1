#include "serve/body/sampling_fields.h"

#include <nlohmann/json.hpp>

#include "base/ascii.h"
#include "base/error.h"
#include "image/web_ui_terms.h"
#include "serve/api_error.h"

namespace braid::serve {
namespace {

constexpr std::size_t kLongestChoice = 100;  // characters

// Lower case, without what separates words: "DPM++ 2M" and "dpmpp_2m" become "dpmpp2m".
std::string plain_name(const std::string& name) {
  auto rest = ascii_lower_case(name);
  if (rest.starts_with("k_")) rest.erase(0, 2);
  std::string plain;
  for (const char c : rest)
    if (c == '+')
      plain += 'p';
    else if (c != ' ' && c != '_' && c != '-')
      plain += c;
  return plain;
}

std::optional<Sampler> sampler_named(const std::string& name) {
  const auto plain = plain_name(name);
  if (plain == "eulera") return Sampler::kEulerAncestral;
  for (const auto& [ours, sampler] : kSamplers)
    if (plain_name(std::string(ours)) == plain) return sampler;
  return {};
}

std::optional<SigmaSchedule> schedule_named(const std::string& name) {
  const auto plain = plain_name(name);
  for (const auto& [ours, schedule] : kSigmaSchedules)
    if (ours == plain) return schedule;
  for (const auto* const own : {"automatic", "normal", "euler", "usesamescheduler"})
    if (plain == own) return SigmaSchedule::kModel;
  return {};
}

template <class Table>
std::string list_of_names(const Table& table) {
  std::string names;
  for (const auto& [name, value] : table) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

// What a field says under each of these names; empty texts say nothing.
std::vector<GivenText> given_texts(Fields& fields, std::initializer_list<const char*> names) {
  std::vector<GivenText> given;
  for (const auto* const name : names)
    if (auto text = fields.text(name, kLongestChoice); text && !text->empty())
      given.push_back({name, std::move(*text)});
  return given;
}

std::string quoted(const std::string& text) { return "'" + text + "'"; }

// The choice of a field with several names, by a table of what there is.
template <class Table, class Find>
auto read_choice(Fields& fields, std::initializer_list<const char*> names, const Table& table,
                 Find find) {
  const auto given = given_texts(fields, names);
  decltype(find(std::string())) chosen;
  for (const auto& [field, text] : given) {
    const auto found = find(text);
    if (!found)
      refuse(field, text_of("'", field, "' should be one of ", list_of_names(table), ", it is '",
                            text, "'"));
    if (chosen && *chosen != *found)
      refuse_contradiction({given.front().field, quoted(given.front().text)},
                           {field, quoted(text)});
    chosen = found;
  }
  return chosen;
}

// "DPM++ 2M Karras" is a sampler and a schedule.
std::pair<std::string, std::optional<SigmaSchedule>> parted(const std::string& name) {
  const auto space = name.rfind(' ');
  if (space == name.npos || sampler_named(name)) return {name, {}};
  const auto schedule = schedule_named(name.substr(space + 1));
  return schedule ? std::pair(name.substr(0, space), schedule) : std::pair(name, schedule);
}

// The web UI's own default stands beside what its clients choose.
void warn_of_other_sampler(const std::vector<GivenText>& samplers, Fields& fields) {
  const auto& [field, text] = samplers.back();
  const auto meant = [](const std::string& name) {
    const auto [sampler, schedule] = parted(name);
    return std::pair(sampler_named(sampler), schedule);
  };
  if (meant(text) == meant(samplers.front().text) || plain_name(text) == "euler") return;
  fields.warn(text_of("'", field, "' ", quoted(text), " is not used: '", samplers.front().field,
                      "' is ", quoted(samplers.front().text)));
}

}  // namespace

void read_sampling(Fields& fields, Sampling& sampling) {
  sampling.sampler = read_choice(fields, {"sampler", "sampler_name"}, kSamplers, sampler_named);
  sampling.schedule =
      read_choice(fields, {"schedule", "scheduler"}, kSigmaSchedules, schedule_named);
  sampling.sigmas = fields.numbers("sigmas");
  sampling.base_sigmas = fields.numbers("base_sigmas");
  sampling.shift = fields.number({"shift"});
  if (sampling.shift && float(*sampling.shift) <= 0)
    refuse("shift", text_of("'shift' should be a number above 0, it is ", *sampling.shift));
}

void read_web_ui_sampling(Fields& fields, Sampling& sampling) {
  const auto samplers = given_texts(fields, {"sampler_name", "sampler_index"});
  const auto asked = samplers.empty() ? "" : samplers.front().text;
  if (samplers.size() > 1) warn_of_other_sampler(samplers, fields);
  const auto [sampler, schedule_behind] = parted(asked);
  sampling.sampler = sampler_named(sampler);
  if (!sampler.empty() && !sampling.sampler)
    fields.warn(text_of("the sampler is the model's own: there is no '", asked, "' here, but ",
                        list_of_names(kSamplers)));
  const auto schedulers = given_texts(fields, {"scheduler"});
  const auto scheduler = schedulers.empty() ? "" : schedulers.front().text;
  const auto named = scheduler.empty() ? schedule_behind : schedule_named(scheduler);
  if (!scheduler.empty() && !named)
    fields.warn(text_of("the schedule is the model's own: there is no '", scheduler, "' here, but ",
                        list_of_names(kSigmaSchedules)));
  // The web UI's default leaves it to the model's files.
  if (named != SigmaSchedule::kModel) sampling.schedule = named;
}

}  // namespace braid::serve
