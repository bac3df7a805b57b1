// Orders for a service without sockets, and their ends.
#pragma once

#include <thread>

#include "fake_backend.h"
#include "serve/api_error.h"
#include "serve/service.h"
#include "wait_until.h"

namespace braid::serve {

inline Order order_of(const std::string& prompt, int pictures = 1,
                      const std::string& client = "me") {
  Order order{.client = client, .is_kept = true, .has_previews = true, .preview_interval = 0};
  order.request = {.prompts = {prompt},
                   .width = 16,
                   .height = 16,
                   .steps = 4,
                   .guidance = 1,
                   .max_sequence_length = 64,
                   .seed = 7,
                   .num_images = pictures};
  return order;
}

inline void start(Service& service) {
  service.start();
  EXPECT_TRUE(wait_until([&] { return service.status().readiness != Readiness::kLoading; }));
}

inline JobState wait_for_end(const Job& job) {
  EXPECT_TRUE(wait_until([&] { return is_final(job.status().state); }));
  return job.status().state;
}

inline int status_of_refusal(Service& service, Order order) {
  try {
    service.submit(std::move(order));
  } catch (const ApiError& error) {
    return error.status;
  }
  return 0;
}

}  // namespace braid::serve
