// What every answer says, whether it has an end or streams.
#pragma once

#include "serve/http/http_date.h"
#include "serve/messages.h"

namespace braid::serve {

inline Headers usual_headers() {
  return {{"date", http_date(std::chrono::system_clock::now())},
          {"cache-control", "no-store"},
          {"x-content-type-options", "nosniff"},
          {"referrer-policy", "no-referrer"}};
}

}  // namespace braid::serve
