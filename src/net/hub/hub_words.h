// Names, dates and addresses as a hub writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace braid::net {

// Throws InputError unless the path stays inside a folder that it is joined to, on this system:
// there ':' and '\' are ordinary characters of names.
void require_inside(const std::string& path, const std::string& repository);

std::string percent_encoded(std::string_view path);  // all but letters, digits and "-_.~/"

// The seconds of a Retry-After header, as a number or a date, counted from `now` (Unix time).
std::optional<std::int64_t> seconds_to_wait(const std::string& retry_after, std::int64_t now);

// The seconds until questions are allowed again, of a RateLimit header that allows none before:
// "\"api\";r=0;t=55" (IETF draft-ietf-httpapi-ratelimit-headers-09). One more than it says, as its
// number is rounded; huggingface_hub adds that, too.
std::optional<std::int64_t> seconds_to_reset(std::string_view rate_limit);

}  // namespace braid::net
