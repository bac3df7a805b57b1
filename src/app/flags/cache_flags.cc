#include "app/flags/flag_groups.h"
#include "app/words/readable.h"

namespace braid {
namespace {

constexpr double kLargestThreshold = 100;

const Choices<CacheMode> kCacheModes = {{"off", CacheMode::kOff},
                                        {"first-block", CacheMode::kFirstBlock},
                                        {"accumulated", CacheMode::kAccumulated}};

}  // namespace

void add_cache_flags(FlagReader& read, CacheOptions& cache) {
  read.text("--cache", "MODE", "Cache",
            "Skip all but the first block of evaluations that would change\n"
            "little. first-block:T: while that block's part has changed by\n"
            "less than T since the last full evaluation; accumulated:T: while\n"
            "the sum of its changes is less than T; off: never. T is 0.1 if\n"
            "not given. The picture changes slightly. Default: off",
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
  read.text("--cache-limit", "N", "Cache", "Most evaluations to skip in a row. Default: 3",
            into(cache.most_in_a_row, whole_from(1, kMostSteps)));
  read.text("--cache-polynomial", "A,B,...", "Cache",
            "Coefficients of the polynomial that accumulated applies to each\n"
            "change, highest power first. Default: 1,0",
            into(cache.polynomial, number_list));
}

std::string words_of(const CacheOptions& cache) {
  const auto name = choice_name(kCacheModes, cache.mode);
  return cache.mode == CacheMode::kOff ? name : name + ":" + decimal(cache.threshold);
}

}  // namespace braid
