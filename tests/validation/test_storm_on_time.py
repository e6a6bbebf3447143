"""Deadlines against Storm's cost-bounded reachability, `Pmax=? [F{"cost"}<=k "goal"]`, on programs
in the PRISM language.
"""

import pytest

import tailpath as tp

stormpy = pytest.importorskip("stormpy", reason="the extra `validation` is not installed")

#: name: (program without its header, deadlines). Some may never arrive; in the `mdp` ones there is
#: something to choose.
PROGRAMS = {
    "jobs": (
        """module job
  done : [0..4] init 0;
  [careful] done<4 -> (done'=done+1);
  [hasty] done<4 -> 0.8:(done'=done+1) + 0.2:(done'=max(0,done-1));
endmodule
label "goal" = done=4;
rewards "cost" [careful] true : 3; [hasty] true : 1; endrewards""",
        [3, 4, 6, 9, 12],
    ),
    "ice": (
        """module walk
  x : [0..5] init 0; fell : bool init false;
  [run] x<5 & !fell -> 0.9:(x'=min(5,x+2)) + 0.1:(fell'=true);
  [step] x<5 & !fell -> (x'=x+1);
  [lie] fell -> true;
endmodule
label "goal" = x=5;
rewards "cost" [run] true : 1; [step] true : 1; [lie] true : 1; endrewards""",
        [2, 3, 4, 5, 6],
    ),
    "retry": (
        """module send
  s : [0..2] init 0;
  [cheap] s=0 -> 0.5:(s'=2) + 0.5:(s'=0);
  [dear] s=0 -> 0.95:(s'=2) + 0.05:(s'=1);
  [wait] s=1 -> 0.25:(s'=0) + 0.75:(s'=1);
endmodule
label "goal" = s=2;
rewards "cost" [cheap] true : 2; [dear] true : 5; [wait] true : 1; endrewards""",
        [2, 4, 5, 8, 13],
    ),
    "lottery": (
        """module play
  money : [0..6] init 2;
  [bold] money>0 & money<6 -> 0.45:(money'=min(6,2*money)) + 0.55:(money'=0);
  [timid] money>0 & money<6 -> 0.45:(money'=money+1) + 0.55:(money'=money-1);
  [over] money=0 -> true;
endmodule
label "goal" = money=6;
rewards "cost" [bold] true : 3; [timid] true : 1; [over] true : 1; endrewards""",
        [4, 6, 9, 20],
    ),
    "ferry": (
        """module ferry
  side : [0..3] init 0;
  [ferry] side=0 -> 0.75:(side'=3) + 0.125:(side'=1) + 0.125:(side'=0);
  [bridge] side=0 -> (side'=2);
  [ferry] side=1 -> 0.6:(side'=3) + 0.4:(side'=0);
  [walk] side=2 -> 0.5:(side'=3) + 0.5:(side'=2);
  [back] side=2 -> (side'=0);
endmodule
label "goal" = side=3;
rewards "cost" [ferry] true : 4; [bridge] true : 2; [walk] true : 3; [back] true : 1; endrewards""",
        [4, 5, 8, 11, 16],
    ),
    "two machines": (
        """module one
  a : [0..2] init 0;
  [fast] a<2 -> 0.7:(a'=a+1) + 0.3:(a'=0);
  [slow] a<2 -> (a'=a+1);
endmodule
module two
  b : [0..2] init 0;
  [polish] a=2 & b<2 -> 0.6:(b'=b+1) + 0.4:(b'=b);
  [buy] a=2 & b<2 -> (b'=2);
endmodule
label "goal" = a=2 & b=2;
rewards "cost" [fast] true : 1; [slow] true : 2; [polish] true : 1; [buy] true : 6; endrewards""",
        [4, 5, 7, 9, 12],
    ),
    "free moves": (
        """module wander
  s : [0..4] init 0;
  [left] s=0 -> (s'=1);
  [right] s=0 -> (s'=2);
  [over] s=1 -> 0.5:(s'=2) + 0.5:(s'=0);
  [over] s=2 -> (s'=1);
  [pay] s=1 -> 0.8:(s'=4) + 0.2:(s'=3);
  [pay] s=2 -> 0.6:(s'=4) + 0.4:(s'=0);
  [again] s=3 -> (s'=0);
endmodule
label "goal" = s=4;
rewards "cost" [pay] s=1 : 3; [pay] s=2 : 2; [again] true : 1; endrewards""",
        [2, 3, 5, 8],
    ),
    "cliff": (
        """module cliff
  x : [0..3] init 0; y : [0..1] init 0; down : bool init false;
  [up] !down & y=0 & x<3 -> (y'=1);
  [along] !down & y=0 & x<3 -> 0.85:(x'=x+1) + 0.15:(down'=true);
  [along] !down & y=1 & x<3 -> (x'=x+1);
  [descend] !down & y=1 -> (y'=0);
  [climb] down -> 0.5:(down'=false)&(x'=0) + 0.5:true;
endmodule
label "goal" = x=3 & y=0 & !down;
rewards "cost" [up] true : 1; [along] true : 1; [descend] true : 1; [climb] true : 4; endrewards""",
        [3, 4, 5, 9, 14],
    ),
    "weather": (
        """module trip
  leg : [0..3] init 0; storm : bool init false;
  [sail] leg<3 & !storm -> 0.8:(leg'=leg+1) + 0.2:(leg'=leg+1)&(storm'=true);
  [sail] leg<3 & storm -> 0.5:(leg'=leg+1) + 0.3:(leg'=leg) + 0.2:(leg'=max(0,leg-1));
  [harbour] leg<3 & storm -> 0.6:(storm'=false) + 0.4:true;
endmodule
label "goal" = leg=3;
rewards "cost" [sail] !storm : 2; [sail] storm : 3; [harbour] true : 1; endrewards""",
        [6, 7, 9, 12],
    ),
    "lift": (
        """module lift
  storey : [0..4] init 4; stuck : bool init false;
  [lift] storey>0 & !stuck -> 0.97:(storey'=0) + 0.03:(stuck'=true);
  [stairs] storey>0 & !stuck -> (storey'=storey-1);
  [help] stuck -> 0.1:(stuck'=false) + 0.9:true;
endmodule
label "goal" = storey=0;
rewards "cost" [lift] true : 5; [stairs] true : 4; [help] true : 10; endrewards""",
        [4, 5, 12, 16, 25],
    ),
    "chain": (
        """module die
  s : [0..3] init 0;
  [go] s=0 -> 0.5:(s'=1) + 0.25:(s'=2) + 0.25:(s'=0);
  [go] s=1 -> 0.75:(s'=3) + 0.25:(s'=0);
  [go] s=2 -> 0.5:(s'=3) + 0.5:(s'=2);
endmodule
label "goal" = s=3;
rewards "cost" [go] s=0 : 1; [go] s=1 : 2; [go] s=2 : 3; endrewards""",
        [3, 4, 7, 10],
    ),
    "courier": (
        """module courier
  s : [0..4] init 0;
  [bike] s=0 -> 0.9:(s'=1) + 0.1:(s'=3);
  [car] s=0 -> 0.6:(s'=1) + 0.4:(s'=2);
  [bike] s=1 -> 0.9:(s'=4) + 0.1:(s'=3);
  [car] s=1 -> 0.6:(s'=4) + 0.4:(s'=2);
  [jam] s=2 -> 0.5:(s'=1) + 0.5:(s'=2);
  [lost] s=3 -> true;
endmodule
label "goal" = s=4;
rewards "cost" [bike] true : 4; [car] true : 2; [jam] true : 3; [lost] true : 1; endrewards""",
        [4, 6, 8, 10, 20],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_on_time_as_storm_says(name, tmp_path):
    body, deadlines = PROGRAMS[name]
    path = tmp_path / "program.nm"
    path.write_text(f"mdp\n{body}\n")
    ssp = tp.read(str(path), goal="goal", cost="cost")
    program = stormpy.parse_prism_program(str(path))
    model = stormpy.build_model(
        program, stormpy.parse_properties('R{"cost"}min=? [F "goal"]', program)
    )
    found = tp.solve_on_time(ssp, max(deadlines))
    for k in deadlines:
        formula = stormpy.parse_properties(f'Pmax=? [F{{"cost"}}<={k} "goal"]', program)[0]
        result = stormpy.model_checking(model, formula, only_initial_states=True)
        assert found.probability(k) == pytest.approx(
            result.get_value(model.initial_states[0]), abs=1e-9
        )
