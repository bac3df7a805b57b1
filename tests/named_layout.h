// Layouts with names for suites of tests.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "braid/layout.h"

namespace braid {

struct NamedLayout {
  const char* name;
  Layout layout;
};

inline std::string name_of_layout(const testing::TestParamInfo<NamedLayout>& info) {
  return info.param.name;
}

}  // namespace braid
