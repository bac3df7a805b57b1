// `braid serve` with ranks as processes: the first one has the sockets and tells the others what
// all do next.
#pragma once

#include "braid/braid.h"
#include "pipeline/engine/engine.h"

namespace braid {

// A request for the other ranks, serialised and back: a line of JSON, then the bytes of its
// pictures. `latents` are not served.
std::string bytes_of_request(const Request& request);
Request request_of_bytes(const std::string& bytes);

// The first rank calls these: before it makes the same call of generate(); periodically while idle;
// at the end.
void announce_request(const Engine& engine, const Request& request);
void announce_nothing(const Engine& engine);
void announce_end(const Engine& engine);

// The other ranks call this: it makes the calls that the first one announces, until the end. Throws
// Error with the cause if a rank is lost.
void follow_first_rank(const Engine& engine);

}  // namespace braid
