// The table of families with a few lines more. It takes the place of the library's own.
#include "family.h"
#include "film/family.h"
#include "pipeline/families/flux/flux.h"
#include "sticker/family.h"

namespace braid {

const std::vector<FamilyEntry>& known_families() {
  static const std::vector<FamilyEntry> kFamilies = {
      flux_family(),           toy::toy_family(),  toy::toy_experts_family(),
      toy::toy_twins_family(), toy::film_family(), toy::sticker_family(),
  };
  return kFamilies;
}

}  // namespace braid
