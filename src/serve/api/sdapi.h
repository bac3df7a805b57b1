// What the endpoints of AUTOMATIC1111's web UI share.
#pragma once

#include "serve/api/api.h"

namespace braid::serve {

const Backend& chosen_in_web_ui(const ApiContext& context);

// When a job began: "20261130235959" in local time, "0" of one that has not.
std::string web_ui_time(const Job::Status& status);

}  // namespace braid::serve
