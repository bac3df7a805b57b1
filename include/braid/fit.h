// Who settles what options leave open.
#pragma once

namespace braid {

// kAsAsked, the default: nobody; the options mean what they say. kAuto: the pipeline does, from the
// model and the devices, as `braid generate` does.
enum class Fit { kAsAsked, kAuto };

}  // namespace braid
