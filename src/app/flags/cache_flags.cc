#include "app/files/picture_text.h"
#include "app/flags/flag_groups.h"

namespace braid {
namespace {

constexpr double kLargestThreshold = 100;

const Choices<CacheMode> kCacheModes = {{"off", CacheMode::kOff},
                                        {"first-block", CacheMode::kFirstBlock},
                                        {"accumulated", CacheMode::kAccumulated}};

}  // namespace

void add_cache_flags(FlagReader& read, CacheOptions& cache) {
  read.text("--cache", "MODE", "Cache",
            "Leave out evaluations that would change little, all but their\n"
            "first block: first-block:T, while that block's part has changed\n"
            "by less than T since the last full one; accumulated:T, while\n"
            "the sum of its changes is less; off. T is 0.1 where none is\n"
            "given. The picture is not quite the same. Default: off",
            [&](const std::string& flag, const std::string& text) {
              const auto colon = text.find(':');
              cache.mode = choice<CacheMode>(flag, text.substr(0, colon), kCacheModes);
              if (colon == std::string::npos) return;
              require(cache.mode != CacheMode::kOff, flag, " off takes no threshold, it is ",
                      in_quotes(text));
              cache.threshold = finite_number(flag, text.substr(colon + 1));
              require(cache.threshold >= 0 && cache.threshold <= kLargestThreshold, flag,
                      " should have a threshold from 0 to ", kLargestThreshold, ", it is ",
                      in_quotes(text));
            });
  read.text("--cache-limit", "N", "Cache",
            "Evaluations that are left out in a row at most. Default: 3",
            into(cache.most_in_a_row, whole_from(1, kMaxSteps)));
  read.text("--cache-polynomial", "A,B,...", "Cache",
            "What a change counts for in accumulated, as the factors of a\n"
            "polynomial, the highest power first. Default: 1,0",
            [&](const std::string& flag, const std::string& text) {
              cache.polynomial.clear();
              for (const auto& factor : split_at_commas(text))
                cache.polynomial.push_back(finite_number(flag, factor));
            });
}

std::string words_of(const CacheOptions& cache) {
  for (const auto& [name, mode] : kCacheModes)
    if (mode == cache.mode)
      return mode == CacheMode::kOff ? name : name + ":" + decimal(cache.threshold);
  return {};
}

}  // namespace braid
