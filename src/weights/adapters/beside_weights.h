// Adapters beside the weights of one part of a model, which may change while it is loaded.
#pragma once

#include <memory>
#include <vector>

#include "weights/adapters/adapted_part.h"
#include "weights/adapters/change.h"

namespace braid {

class BesideWeights {
 public:
  BesideWeights(AdaptedPart part, at::Device device) : part_(std::move(part)), device_(device) {}

  const AdaptedPart& part() const { return part_; }

  // A weight that is being loaded, without products so far. Where nobody keeps it, it is another
  // rank's, whose adapters are checked here too.
  std::shared_ptr<const Beside> add(const AskedTensor& asked, const Wanted& wanted);

  // These take the place of those that were there. Throws InputError, which leaves them, for an
  // adapter that is more than products of low rank, or that does not fit.
  void apply(const std::vector<AppliedAdapter>& adapters);

  // The same between two requests: all that the adapters change has to be here. The last few sets
  // of adapters are kept.
  void switch_to(const std::vector<AppliedAdapter>& adapters);

 private:
  struct Place {
    AskedTensor asked;
    Wanted wanted;
    std::weak_ptr<Beside> beside;
  };
  Beside made_for(const Place& place, const std::vector<AppliedAdapter>& adapters,
                  const std::vector<AdapterNames>& names, UsedTensors& used) const;
  Beside product_of(const Change& change, const Place& place) const;
  std::vector<Beside> made(const std::vector<AppliedAdapter>& adapters, UsedTensors& used) const;
  void put(const std::vector<Beside>& products);
  void check_switchable(const AdapterFile& file) const;

  const AdaptedPart part_;
  const at::Device device_;
  std::vector<Place> places_;
  struct Kept {
    std::vector<AppliedAdapter> adapters;
    std::vector<Beside> products;  // by place
  };
  std::vector<Kept> kept_;  // what was used last comes first
};

}  // namespace braid
