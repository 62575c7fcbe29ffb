// The paper's sampled circuit, by its published description and at its exact size, only for the
// benchmark: 9,303 constraints per sample and 40 more. The numbers in the rules are invented; they do
// not change the cost of a proof.
//
// circomlib is read from where `make rival` installed it (GPL: it is not part of Sluice).
pragma circom 2.1.0;

include "circomlib/circuits/bitify.circom";
include "circomlib/circuits/comparators.circom";
include "circomlib/circuits/poseidon.circom";

// A row: the eighteen channels that rules read, in two chunks of nine, and a hash of the others.
template Leaf() {
    signal input x[18];
    signal input rest;
    signal output out;
    component chunks[2];
    component top = Poseidon(3);
    for (var c = 0; c < 2; c++) {
        chunks[c] = Poseidon(9);
        for (var i = 0; i < 9; i++) {
            chunks[c].inputs[i] <== x[9 * c + i];
        }
        top.inputs[c] <== chunks[c].out;
    }
    top.inputs[2] <== rest;
    out <== top.out;
}

// From a leaf to the root of a binary tree.
template Climb(depth) {
    signal input leaf;
    signal input bits[depth];
    signal input siblings[depth];
    signal output root;
    signal nodes[depth + 1];
    signal left[depth];
    signal right[depth];
    component hashes[depth];
    nodes[0] <== leaf;
    for (var i = 0; i < depth; i++) {
        left[i] <== nodes[i] + bits[i] * (siblings[i] - nodes[i]);
        right[i] <== siblings[i] + bits[i] * (nodes[i] - siblings[i]);
        hashes[i] = Poseidon(2);
        hashes[i].inputs[0] <== left[i];
        hashes[i].inputs[1] <== right[i];
        nodes[i + 1] <== hashes[i].out;
    }
    root <== nodes[depth];
}

// A row under the root; every channel has thirty-two bits.
template Open(depth) {
    signal input root;
    signal input index;
    signal input x[18];
    signal input rest;
    signal input siblings[depth];
    component bits = Num2Bits(depth);
    bits.in <== index;
    component ranges[18];
    component leaf = Leaf();
    component climb = Climb(depth);
    for (var i = 0; i < 18; i++) {
        ranges[i] = Num2Bits(32);
        ranges[i].in <== x[i];
        leaf.x[i] <== x[i];
    }
    leaf.rest <== rest;
    climb.leaf <== leaf.out;
    for (var i = 0; i < depth; i++) {
        climb.bits[i] <== bits.out[i];
        climb.siblings[i] <== siblings[i];
    }
    climb.root === root;
}

// Whether a residual lies within its tolerance: a comparison from either side.
template Within(tolerance) {
    signal input residual;
    signal output out;
    var middle = 1 << 54;
    component low = LessEqThan(56);
    component high = LessEqThan(56);
    low.in[0] <== middle - tolerance;
    low.in[1] <== residual + middle;
    high.in[0] <== residual + middle;
    high.in[1] <== middle + tolerance;
    out <== low.out * high.out;
}

// Whether an actuator keeps one state, off or on, over both rows.
template Steady(off, on) {
    signal input before;
    signal input now;
    signal output out;
    signal both[2];
    component same[4];
    for (var s = 0; s < 2; s++) {
        for (var r = 0; r < 2; r++) {
            same[2 * s + r] = IsEqual();
            same[2 * s + r].in[0] <== r == 0 ? before : now;
            same[2 * s + r].in[1] <== s == 0 ? off : on;
        }
        both[s] <== same[2 * s].out * same[2 * s + 1].out;
    }
    out <== both[0] + both[1];
}

// Channels 0 to 8 are flows, 9 to 11 levels, 12 to 17 actuators.
template Judge() {
    signal input before[18];
    signal input now[18];
    signal output violations;
    signal output silent;
    var bias = 1 << 31;
    var S = 1 << 16;
    component within[9];
    component steady[6];
    signal broken[6];
    var violating = 0;
    var inapplicable = 0;
    for (var j = 0; j < 6; j++) {
        steady[j] = Steady(bias + S, bias + 2 * S);
        steady[j].before <== before[12 + j];
        steady[j].now <== now[12 + j];
        within[j] = Within(1246250034 + j);
        within[j].residual <== S * (now[j] - bias) - (160483 + j) * (now[12 + j] - bias - S);
        broken[j] <== steady[j].out * (1 - within[j].out);
        violating += broken[j];
        inapplicable += 1 - steady[j].out;
    }
    for (var j = 0; j < 3; j++) {
        var residual = S * (now[9 + j] - before[9 + j]);
        for (var i = 0; i < 9; i++) {
            residual += (62090 - 1201 * i + j) * (now[i] - bias);
        }
        within[6 + j] = Within(26529607341 + j);
        within[6 + j].residual <== residual;
        violating += 1 - within[6 + j].out;
    }
    violations <== violating;
    silent <== inapplicable;
}

template Attestation(k, depth) {
    signal input root;
    signal input idx[k];
    signal input vMax;
    signal input uMax;
    signal input xPrev[k][18];
    signal input xCur[k][18];
    signal input hRestPrev[k];
    signal input hRestCur[k];
    signal input pathPrev[k][depth];
    signal input pathCur[k][depth];
    component before[k];
    component now[k];
    component judged[k];
    var violations = 0;
    var silent = 0;
    for (var s = 0; s < k; s++) {
        before[s] = Open(depth);
        now[s] = Open(depth);
        judged[s] = Judge();
        before[s].root <== root;
        now[s].root <== root;
        before[s].index <== idx[s] - 1;
        now[s].index <== idx[s];
        before[s].rest <== hRestPrev[s];
        now[s].rest <== hRestCur[s];
        for (var i = 0; i < 18; i++) {
            before[s].x[i] <== xPrev[s][i];
            now[s].x[i] <== xCur[s][i];
            judged[s].before[i] <== xPrev[s][i];
            judged[s].now[i] <== xCur[s][i];
        }
        for (var i = 0; i < depth; i++) {
            before[s].siblings[i] <== pathPrev[s][i];
            now[s].siblings[i] <== pathCur[s][i];
        }
        violations += judged[s].violations;
        silent += judged[s].silent;
    }
    component fewViolations = LessEqThan(20);
    fewViolations.in[0] <== violations;
    fewViolations.in[1] <== vMax;
    fewViolations.out === 1;
    component fewSilent = LessEqThan(20);
    fewSilent.in[0] <== silent;
    fewSilent.in[1] <== uMax;
    fewSilent.out === 1;
}
