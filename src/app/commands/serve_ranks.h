// `braid serve` where ranks are processes: the first has the sockets and tells the others what all
// of them do next.
#pragma once

#include "braid/braid.h"
#include "pipeline/engine.h"

namespace braid {

// A request for the other ranks, and back: a line of JSON, then the bytes of its pictures.
// `latents` are not served.
std::string bytes_of_request(const Request& request);
Request request_of_bytes(const std::string& bytes);

// On the first rank: before it makes the same call of generate(), now and then while there is
// nothing to do, and at the end.
void announce_request(const Engine& engine, const Request& request);
void announce_nothing(const Engine& engine);
void announce_end(const Engine& engine);

// On the others: makes the calls that the first one announces, until the end. Throws where the
// first one is lost.
void follow_first_rank(const Engine& engine);

}  // namespace braid
