#include "ops/gpu/architectures.h"

#include <algorithm>
#include <charconv>

namespace braid::ops::gpu {
namespace {

constexpr std::string_view kNvidia = "sm_";

struct Number {
  int value = 0;          // 0: there is none
  std::string_view rest;  // of the text, behind it
};

Number number_at(std::string_view text) {
  Number number;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number.value);
  if (error == std::errc()) number.rest = text.substr(std::size_t(end - text.data()));
  return number;
}

// NVIDIA, CUDA C++ Programming Guide, "Binary Compatibility" and "PTX Compatibility": code of a
// device ("-real") runs on later ones of its generation, PTX ("-virtual") on all later ones; an
// entry has both unless it says which. That of "90a" is the device's alone, that of "100f" its
// generation's.
bool covers_nvidia(std::string_view entry, int device) {
  const auto [number, rest] = number_at(entry);
  if (number == 0) return true;  // "native", "all"
  if (rest.starts_with("a")) return number == device;
  const bool is_of_generation = number / 10 == device / 10;
  const bool is_for_all_later = !rest.starts_with("f") && !rest.ends_with("-real");
  return number <= device && (is_of_generation || is_for_all_later);
}

// The features behind a colon are settings of a device. "gfx11-generic" stands for several.
bool covers_amd(std::string_view entry, std::string_view device) {
  const auto plain = [](std::string_view name) { return name.substr(0, name.find(':')); };
  return !entry.starts_with("gfx") || plain(entry).ends_with("-generic") ||
         plain(entry) == plain(device);
}

}  // namespace

bool runs_kernels(std::string_view architecture, std::string_view compiled) {
  if (architecture.empty() || compiled.empty()) return true;
  const bool is_nvidia = architecture.starts_with(kNvidia);
  const int number = is_nvidia ? number_at(architecture.substr(kNvidia.size())).value : 0;
  while (!compiled.empty()) {
    const auto entry = compiled.substr(0, compiled.find(','));
    compiled.remove_prefix(std::min(compiled.size(), entry.size() + 1));
    if (is_nvidia ? covers_nvidia(entry, number) : covers_amd(entry, architecture)) return true;
  }
  return false;
}

std::string entry_for(std::string_view architecture) {
  if (architecture.starts_with(kNvidia)) architecture.remove_prefix(kNvidia.size());
  return std::string(architecture.substr(0, architecture.find(':')));
}

}  // namespace braid::ops::gpu
