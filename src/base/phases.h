// The phases of a run, and what they are called: in reports, in events and in metrics.
#pragma once

#include <array>

#include "braid/hooks.h"

namespace braid {

constexpr std::array<Phase, 4> kPhases = {Phase::kLoad, Phase::kText, Phase::kDenoise,
                                          Phase::kDecode};

inline const char* phase_name(Phase phase) {
  switch (phase) {
    case Phase::kLoad:
      return "load";
    case Phase::kText:
      return "text";
    case Phase::kDenoise:
      return "denoise";
    case Phase::kDecode:
      return "decode";
  }
  return "";
}

}  // namespace braid
