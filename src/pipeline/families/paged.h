// A network and the page holding all its weights, which is empty unless they are offloaded whole.
#pragma once

#include "weights/weights.h"

namespace braid {

template <class Network>
struct Paged {
  Page page;
  Network network;
};

template <class Network, class Config>
Paged<Network> load_paged(const Config& config, const Weights& w) {
  return {.page = w.page(), .network = Network(config, w)};
}

}  // namespace braid
