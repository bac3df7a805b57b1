// Requests that end badly, each in a way of its own, and a good one.
#pragma once

#include <map>

#include "pipeline/engine.h"

namespace braid {

PipelineOptions demo_options(const Layout& layout = {});

// Two branches, so that they can be shared out; two pictures, decoded in tiles.
Request good_request();

using PictureBytes = std::vector<std::uint8_t>;
PictureBytes bytes_of(const std::vector<Picture>& pictures);

// Hooks that call `act` when a phase has done so much.
Hooks at_progress(Phase phase, std::int64_t done, std::function<void()> act);

// Makes its request of the engine and expects it to end as it should. By name.
using BadRequest = std::function<void(const Engine&)>;

// What is wrong with the request itself: found before ranks start.
std::map<std::string, BadRequest> wrong_requests();
// What goes wrong on the first rank while it draws.
std::map<std::string, BadRequest> failing_requests();
// Stops that the first rank's caller asks for.
std::map<std::string, BadRequest> stopped_requests();
// Memory that runs out after so many allocations of whichever rank comes to them.
BadRequest without_memory_after(std::int64_t count);

}  // namespace braid
