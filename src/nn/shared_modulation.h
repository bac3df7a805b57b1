// A choice of tensor parallelism that several models offer.
#pragma once

namespace braid {

// Whether ranks share the layers that make modulations, each computing a run of their outputs.
enum class SharedModulation { kYes, kNo };

}  // namespace braid
