// Requests that fail, each in its own way, and a good one.
#pragma once

#include <map>

#include "pipeline/engine/engine.h"

namespace braid {

PipelineOptions demo_options(const Layout& layout = {});

// Two branches, so that they can be split among ranks; two pictures, decoded in tiles.
Request good_request();

using PictureBytes = std::vector<std::uint8_t>;
PictureBytes bytes_of(const std::vector<Picture>& pictures);

// Hooks that call `act` when a phase reaches `done`.
Hooks at_progress(Phase phase, std::int64_t done, std::function<void()> act);

// Sends its request to the engine and expects the matching failure. By name.
using BadRequest = std::function<void(const Engine&)>;

// Invalid requests: refused before ranks start.
std::map<std::string, BadRequest> wrong_requests();
// Failures on the first rank while it draws.
std::map<std::string, BadRequest> failing_requests();
// Stops requested by the first rank's caller.
std::map<std::string, BadRequest> stopped_requests();
// Memory that runs out after `count` allocations, on whichever rank gets there.
BadRequest without_memory_after(std::int64_t count);

}  // namespace braid
