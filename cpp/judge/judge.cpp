#include "judge/judge.h"

#include "judge/parts.h"

namespace weft::judge {

std::optional<Violation> judge(const Claim& claim) {
    First first = check_rows(claim);
    if (first.found()) return first.found();
    if (claim.timed) {
        const Hops hops(claim);
        // Where times lie, nothing that follows from them is worth telling.
        first = check_times(claim, hops);
        if (first.found()) return first.found();
        first = check_links(claim, hops);
    }
    first.offer(check_flow(claim));
    return first.found();
}

}  // namespace weft::judge
