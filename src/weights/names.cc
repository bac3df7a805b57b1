#include "weights/names.h"

#include <algorithm>

#include "base/ascii.h"

namespace braid {
namespace {

bool match_segments(const std::vector<std::string_view>& pattern,
                    const std::vector<std::string_view>& path, std::size_t count) {
  return std::equal(pattern.begin(), pattern.begin() + long(count), path.begin(),
                    [](auto want, auto have) { return want == "*" || want == have; });
}

// Replaces the stars of `theirs` by the segments that matched those of `ours`, and appends the rest
// of the path ("weight", "bias").
std::string carry_over(const std::string& theirs, const std::vector<std::string_view>& ours,
                       const std::vector<std::string_view>& path) {
  std::vector<std::string_view> met;
  for (std::size_t i = 0; i < ours.size(); ++i)
    if (ours[i] == "*") met.push_back(path[i]);
  std::string name;
  std::size_t star = 0;
  for (const auto segment : segments_of(theirs, '.'))
    (name += segment == "*" ? met.at(star++) : segment) += '.';
  for (std::size_t i = ours.size(); i < path.size(); ++i) (name += path[i]) += '.';
  name.pop_back();
  return name;
}

}  // namespace

std::vector<Origin> origins_of(const Names& names, std::string_view path) {
  const auto wanted = segments_of(path, '.');
  std::vector<Origin> origins;
  for (const auto& spelling : names.spellings) {
    const auto ours = segments_of(spelling.name, '.');
    if (ours.size() > wanted.size() || !match_segments(ours, wanted, ours.size())) continue;
    Origin origin{.tensors = {}, .order = spelling.order, .parts = spelling.parts};
    for (const auto& theirs : spelling.stored)
      origin.tensors.push_back(names.prefix + carry_over(theirs, ours, wanted));
    origins.push_back(std::move(origin));
  }
  if (origins.empty()) origins.push_back({.tensors = {names.prefix + std::string(path)}});
  return origins;
}

bool matches(std::string_view pattern, std::string_view path) {
  auto want = segments_of(pattern, '.');
  const auto have = segments_of(path, '.');
  if (want.back() == "**") {
    want.pop_back();
    return have.size() > want.size() && match_segments(want, have, want.size());
  }
  return want.size() == have.size() && match_segments(want, have, want.size());
}

bool matches_any(const std::vector<std::string>& patterns, std::string_view path) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches(pattern, path); });
}

}  // namespace braid
