// Groups of weights in pages, and what their numbers should be.
#pragma once

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include "weights/paging/page_layout.h"
#include "weights/paging/pages.h"

namespace braid {

struct PagedModel {
  std::vector<Tensor> wanted, views;

  // Has as many rows as a GPU needs some time to copy.
  PagedModel(Pages& pages, int groups) {
    const auto generator = at::detail::createCPUGenerator(3);
    for (int i = 0; i < groups; ++i) {
      wanted.push_back(at::randn({rows(i), 64}, generator, at::kFloat));
      pages.add_group("blocks." + std::to_string(i));
      views.push_back(pages.add(wanted.back()));
    }
    pages.finish();
  }

  static std::int64_t rows(int group) { return 5 * BRAID_WORK + 100 * (group % 3); }
  static std::vector<std::int64_t> page_bytes(int groups) {
    std::vector<std::int64_t> bytes;
    for (int i = 0; i < groups; ++i) bytes.push_back(round_up(rows(i) * 64 * 4, kPageAlignment));
    return bytes;
  }
};

}  // namespace braid
